//! Many requests at once: none is dropped.

use lastbyte_testkit::as_many_as;
use serde_json::json;

use super::fixture::{Fixture, fault, result, run};
use super::transport::Transport;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_requests_in_one_go_are_all_served() {
    for transport in Transport::ALL {
        let fixture = Fixture::new();
        let mut client = transport.client(&fixture).await;
        let mut begin = |n: i64| {
            let params = json!({"command": ["true"], "processId": n.to_string()});
            client.request("command/exec", params)
        };
        let requests: Vec<i64> = (0..1000).map(&mut begin).collect();
        for request in requests {
            assert_eq!(result(&client.answer(request).await), (0, "", ""), "{transport:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_has_to_wait_and_loses_no_answer() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    client.read_on(false);
    // Their answers are several times larger than the limit for unread answers.
    let padding = "x".repeat(1000);
    let requests: Vec<i64> = (0..20_000)
        .map(|_| client.request("command/exec/terminate", json!({"processId": padding})))
        .collect();
    client.read_on(true);
    for request in requests {
        assert_eq!(fault(&client.answer(request).await).0, -32600);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn six_hundred_terminals_at_once_all_end() {
    // Each needs seven descriptors, including its connection to the anchor.
    let count = as_many_as(600, 8);
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let requests: Vec<i64> = (0..count)
        .map(|n| {
            let more = json!({"processId": n.to_string(), "tty": true});
            client.request("command/exec", run("join then cat then exit 8", more))
        })
        .collect();
    fixture.anchor.wait_for(count as usize);
    let extra = client.exec(run("print one-more", json!({"processId": "x", "tty": true}))).await;
    assert_eq!((result(&extra).0, client.output("x", "stdout")), (0, b"one-more".to_vec()));
    for n in 0..count {
        client
            .request("command/exec/write", json!({"processId": n.to_string(), "closeStdin": true}));
    }
    for request in requests {
        assert_eq!(result(&client.answer(request).await).0, 8);
    }
}
