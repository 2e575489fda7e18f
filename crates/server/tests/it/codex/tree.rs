//! Whatever ends a command early ends everything it started, including other sessions and orphans.

use serde_json::{Value, json};

use super::client::Client;
use super::fixture::{Fixture, result, run};
use super::transport::Transport;

/// A third are plain children, a third have their own sessions, a third are orphans; all ignore
/// every signal that can be ignored.
const TREE: &str = "stubborn-tree 6 then hold";
const MEMBERS: usize = 7;

/// Starts one tree on pipes and one on a terminal.
fn begin_both(client: &mut Client, more: &Value) -> [i64; 2] {
    [false, true].map(|tty| {
        let mut more = more.clone();
        more["processId"] = tty.to_string().into();
        more["tty"] = tty.into();
        client.request("command/exec", run(TREE, more))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn terminate_leaves_no_process() {
    for transport in Transport::ALL {
        let fixture = Fixture::new();
        let mut client = transport.client(&fixture).await;
        let begun = begin_both(&mut client, &json!({}));
        fixture.anchor.wait_for(2 * MEMBERS);
        for (tty, begun) in ["false", "true"].into_iter().zip(begun) {
            client.request("command/exec/terminate", json!({"processId": tty}));
            assert_eq!(result(&client.answer(begun).await).0, 137, "{transport:?}");
        }
        fixture.anchor.wait_for_at_most(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_leaves_no_process() {
    let fixture = Fixture::new();
    let mut begun = Vec::new();
    for transport in Transport::ALL {
        let mut client = transport.client(&fixture).await;
        // Long enough for all trees to grow.
        let both = begin_both(&mut client, &json!({"timeoutMs": 4000}));
        begun.push((client, both));
    }
    fixture.anchor.wait_for(Transport::ALL.len() * 2 * MEMBERS);
    for (client, both) in &mut begun {
        for request in *both {
            assert_eq!(result(&client.answer(request).await).0, 124);
        }
    }
    fixture.anchor.wait_for_at_most(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_connection_leaves_no_process() {
    for transport in Transport::ALL {
        let fixture = Fixture::new();
        let mut client = transport.client(&fixture).await;
        begin_both(&mut client, &json!({}));
        let spawn = json!({"processHandle": "p", "cwd": "/", "timeoutMs": null});
        client.request("process/spawn", run(TREE, spawn));
        // An ended command leaves a survivor, which ends with the connection.
        client
            .exec(run("setsid-background close-stdout then close-stderr then hold end", json!({})))
            .await;
        fixture.anchor.wait_for(3 * MEMBERS + 1);
        client.close();
        fixture.anchor.wait_for_at_most(0);
    }
}
