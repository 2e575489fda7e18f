//! `terminate`, `resize`, and the order of requests about one id.

use serde_json::{Value, json};

use super::client::base64;
use super::fixture::{Fixture, fault, result, run};

fn id(id: &str) -> Value {
    json!({"processId": id})
}

fn position(got: &[Value], id: i64) -> usize {
    got.iter().position(|message| message["id"] == id).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn terminate_is_acknowledged_then_the_whole_tree_is_gone() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let tree = "trap 15 print TRAP then print up then stubborn-tree 9 then hold";
    let mut params = run(tree, json!({"processId": "t"}));
    params["streamStdoutStderr"] = true.into();
    let begun = client.request("command/exec", params);
    fixture.anchor.wait_for(10);
    let ended = client.request("command/exec/terminate", id("t"));
    let answer = client.answer(begun).await;
    assert_eq!(result(&answer), (137, "", ""));
    assert_eq!(client.answer(ended).await["result"], json!({}));
    assert!(position(&client.got, ended) < position(&client.got, begun));
    assert!(!String::from_utf8_lossy(&client.output("t", "stdout")).contains("TRAP"));
    fixture.anchor.wait_for_at_most(0);
    let again = client.call("command/exec/terminate", id("t")).await;
    assert_eq!(fault(&again), (-32600, "no active command/exec for process id \"t\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_write_and_terminate_can_be_sent_without_waiting() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    for round in 0..20 {
        let id = format!("r{round}");
        let params = run(
            "cat then hold",
            json!({"processId": id, "streamStdin": true, "streamStdoutStderr": true}),
        );
        let begun = client.request("command/exec", params);
        let write = json!({"processId": id, "deltaBase64": base64("hello"), "closeStdin": true});
        let written = client.request("command/exec/write", write);
        if round % 2 == 0 {
            client.until_output(&id, "stdout", b"hello").await;
        }
        let ended = client.request("command/exec/terminate", json!({"processId": id}));
        assert_eq!(result(&client.answer(begun).await).0, 137);
        assert_eq!(client.answer(written).await["result"], json!({}));
        assert_eq!(client.answer(ended).await["result"], json!({}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_in_use_until_its_answer() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let begun = client.request("command/exec", run("hold", id("same")));
    let duplicate = client.exec(run("exit 0", id("same"))).await;
    assert_eq!(fault(&duplicate), (-32600, "duplicate active command/exec process id: \"same\""));
    client.call("command/exec/terminate", id("same")).await;
    client.answer(begun).await;
    for _ in 0..100 {
        assert_eq!(result(&client.exec(run("exit 0", id("same"))).await).0, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_start_frees_its_id_for_the_next_request() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let failing =
        client.request("command/exec", json!({"command": ["/no/such"], "processId": "x"}));
    let lost = client.request("command/exec/terminate", id("x"));
    let begun = client.request("command/exec", run("print second then hold", id("x")));
    let ended = client.request("command/exec/terminate", id("x"));
    assert_eq!(fault(&client.answer(failing).await).0, -32603);
    assert_eq!(fault(&client.answer(lost).await).1, "no active command/exec for process id \"x\"");
    assert_eq!(client.answer(ended).await["result"], json!({}));
    assert_eq!(result(&client.answer(begun).await).0, 137);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_ids_at_once_do_not_disturb_each_other() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let begun: Vec<i64> = (0..50)
        .map(|n| client.request("command/exec", run("hold", json!({"processId": n.to_string()}))))
        .collect();
    fixture.anchor.wait_for(50);
    for n in (0..50).step_by(2) {
        client.request("command/exec/terminate", json!({"processId": n.to_string()}));
    }
    for n in (0..50).step_by(2) {
        assert_eq!(result(&client.answer(begun[n]).await).0, 137);
    }
    fixture.anchor.wait_for_at_most(25);
    fixture.anchor.tell("exit 9");
    for n in (1..50).step_by(2) {
        assert_eq!(result(&client.answer(begun[n]).await).0, 9);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_resized_and_a_pipe_is_not() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let params = run("print-winsize-on-winch", json!({"processId": "t", "tty": true}));
    let begun = client.request("command/exec", params);
    client.until_output("t", "stdout", b"ready\r\n").await;
    let size = json!({"rows": 45, "cols": 132});
    let resized = client.call("command/exec/resize", json!({"processId": "t", "size": size})).await;
    assert_eq!(resized["result"], json!({}));
    assert_eq!(result(&client.answer(begun).await).0, 0);
    assert_eq!(client.output("t", "stdout"), b"ready\r\n45 132\r\n");
    let begun = client.request("command/exec", run("hold", id("p")));
    let refused = client.call("command/exec/resize", json!({"processId": "p", "size": size})).await;
    let text = "failed to resize PTY: process is not attached to a PTY";
    assert_eq!(fault(&refused), (-32600, text));
    client.call("command/exec/terminate", id("p")).await;
    client.answer(begun).await;
}
