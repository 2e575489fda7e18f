//! From the leader's exit to the answer: it has the tail, and holders do not delay it.

use std::time::Duration;

use lastbyte_engine::{Filter, Phase};
use lastbyte_testkit::{eventually, is_alive, is_stopped, pattern_bytes};
use serde_json::json;

use super::fixture::{Fixture, fault, result, run};

const QUIET_WINDOW: Duration = Duration::from_millis(50);

#[tokio::test(flavor = "multi_thread")]
async fn a_tail_after_the_exit_is_in_the_answer_and_its_writer_lives() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let answer = client.exec(run("leave-tail", json!({}))).await;
    assert_eq!(result(&answer), (0, "tail", ""));
    assert_eq!(answer["result"]["heldOpen"], true);
    assert!(is_alive(fixture.anchor.wait_for(1)[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_holder_is_not_waited_for() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let answer = client.exec(run("print out then leave-silent-holder", json!({}))).await;
    assert_eq!(result(&answer), (0, "out", ""));
    // It holds the output until the test ends.
    assert_eq!(answer["result"]["heldOpen"], true);
    assert!(is_alive(fixture.anchor.wait_for(1)[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chatty_holder_is_cut_off_at_the_limit_without_losing_earlier_bytes() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let streamed = json!({"processId": "c", "streamStdoutStderr": true});
    let answer = client.exec(run("leave-chatty-holder 5", streamed)).await;
    assert_eq!(result(&answer).0, 0);
    let output = client.output("c", "stdout");
    assert!(!output.is_empty());
    assert_eq!(output, pattern_bytes(0..output.len() as u64));
    assert_eq!(answer["result"]["stdoutBytes"], output.len());
}

/// The only thread is busy while the quiet window passes and a byte arrives. Then both are ready at
/// once, and the byte must always win.
#[tokio::test]
async fn a_byte_that_is_ready_at_the_end_of_the_quiet_window_is_kept() {
    for _ in 0..8 {
        let fixture = Fixture::new();
        let mut client = fixture.client().await;
        let params = json!({"processId": "q", "streamStdin": true, "streamStdoutStderr": true});
        let holder = "background join then print up, then hold end then await-eof";
        let begun = client.request("command/exec", run(holder, params));
        client.until_output("q", "stdout", b"up,").await;
        let holder = fixture.anchor.wait_for(1)[0];
        let process = fixture.engine.list(&Filter::default(), None, 1).processes.remove(0).0;
        client.request("command/exec/write", json!({"processId": "q", "closeStdin": true}));
        process.wait_for(|at| matches!(at.phase, Phase::Draining)).await;
        fixture.anchor.tell("print late");
        fixture.anchor.tell("kill-self 19");
        eventually("the byte is written", || is_stopped(holder));
        std::thread::park_timeout(QUIET_WINDOW * 2);
        assert_eq!(result(&client.answer(begun).await).0, 0);
        assert_eq!(client.output("q", "stdout"), b"up,late");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_cannot_be_controlled_after_its_exit() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let params = json!({"processId": "d", "streamStdin": true, "streamStdoutStderr": true});
    let begun = client.request("command/exec", run("leave-chatty-holder 5", params));
    // The holder writes nothing before the leader has exited.
    fixture.anchor.wait_for(1);
    let size = json!({"rows": 1, "cols": 1});
    let controls = [
        ("terminate", json!({"processId": "d"})),
        ("write", json!({"processId": "d", "deltaBase64": ""})),
        ("resize", json!({"processId": "d", "size": size})),
    ];
    // Repeated until the exit is seen, while the holder keeps the drain going.
    let gone = "command/exec \"d\" is no longer running";
    let probe = json!({"processId": "d", "deltaBase64": ""});
    while client.call("command/exec/write", probe.clone()).await.get("error").is_none() {}
    for (method, params) in controls {
        let answer = client.call(&format!("command/exec/{method}"), params).await;
        assert_eq!(fault(&answer), (-32600, gone));
    }
    assert!(!client.got.iter().any(|message| message["id"] == begun), "the answer is yet to come");
    assert_eq!(result(&client.answer(begun).await).0, 0);
    let after = client.call("command/exec/terminate", json!({"processId": "d"})).await;
    assert_eq!(fault(&after).1, "no active command/exec for process id \"d\"");
    assert_eq!(fixture.anchor.count(), 1, "what was refused did nothing");
}
