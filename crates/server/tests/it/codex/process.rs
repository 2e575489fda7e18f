//! `process/*`: the answer comes at the start, and the end is a notification.

use serde_json::{Value, json};

use super::client::{Client, base64};
use super::fixture::{Fixture, fault, run};

fn spawn(handle: &str, actions: &str, more: Value) -> Value {
    let mut params = run(actions, json!({"processHandle": handle, "cwd": "/", "timeoutMs": null}));
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

async fn exited(client: &mut Client, handle: &str) -> Value {
    client
        .until("it has exited", |got| {
            let exits = got.iter().filter(|message| message["method"] == "process/exited");
            exits
                .map(|exit| &exit["params"])
                .find(|params| params["processHandle"] == handle)
                .cloned()
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_notification_has_the_output_up_to_the_cap() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let actions = "print abcde then eprint 12 then exit 3";
    let answer =
        client.call("process/spawn", spawn("p", actions, json!({"outputBytesCap": 3}))).await;
    assert_eq!(answer["result"], json!({}));
    let exit = exited(&mut client, "p").await;
    let members = [
        "exitCode",
        "stdout",
        "stdoutCapReached",
        "stderr",
        "stderrCapReached",
        "outputDrainTimedOut",
    ];
    let got: Vec<_> = members.iter().map(|member| exit[member].clone()).collect();
    assert_eq!(got, [json!(3), json!("abc"), json!(true), json!("12"), json!(false), json!(false)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn output_comes_before_the_exit_notification() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let more = json!({"streamStdin": true, "streamStdoutStderr": true, "outputBytesCap": null, "timeoutMs": null});
    client.request("process/spawn", spawn("p", "cat then exit 4", more));
    let write = json!({"processHandle": "p", "deltaBase64": base64("hey"), "closeStdin": true});
    assert_eq!(client.call("process/writeStdin", write).await["result"], json!({}));
    assert_eq!(exited(&mut client, "p").await["exitCode"], 4);
    assert_eq!(client.output("p", "stdout"), b"hey");
    assert_eq!(client.got.last().unwrap()["method"], "process/exited");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_ends_the_tree_and_a_terminal_is_resized() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    client.call("process/spawn", spawn("p", "stubborn-tree 6 then hold", json!({}))).await;
    fixture.anchor.wait_for(7);
    assert_eq!(
        client.call("process/kill", json!({"processHandle": "p"})).await["result"],
        json!({})
    );
    assert_eq!(exited(&mut client, "p").await["exitCode"], 137);
    fixture.anchor.wait_for_at_most(0);
    client.call("process/spawn", spawn("t", "print-winsize-on-winch", json!({"tty": true}))).await;
    client.until_output("t", "stdout", b"ready\r\n").await;
    let size = json!({"rows": 3, "cols": 4});
    client.call("process/resizePty", json!({"processHandle": "t", "size": size})).await;
    exited(&mut client, "t").await;
    assert_eq!(client.output("t", "stdout"), b"ready\r\n3 4\r\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_texts_of_codex() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    client.call("process/spawn", spawn("ta\"ken", "hold", json!({}))).await;
    let zero = json!({"rows": 0, "cols": 1});
    let cases = [
        (
            "spawn",
            json!({"command": [], "processHandle": "x", "cwd": "/"}),
            -32600,
            "command must not be empty",
        ),
        ("spawn", spawn("", "", json!({})), -32600, "processHandle must not be empty"),
        (
            "spawn",
            spawn("x", "", json!({"cwd": "rel"})),
            -32600,
            "Invalid request: AbsolutePathBuf deserialized without a base path",
        ),
        (
            "spawn",
            spawn("x", "", json!({"size": zero})),
            -32602,
            "process/spawn size requires tty: true",
        ),
        (
            "spawn",
            spawn("x", "", json!({"size": zero, "tty": true})),
            -32602,
            "process size rows and cols must be greater than 0",
        ),
        (
            "spawn",
            spawn("x", "", json!({"timeoutMs": -5})),
            -32602,
            "process/spawn timeoutMs must be non-negative, got -5",
        ),
        (
            "spawn",
            spawn("x", "", json!({"command": ["/no/such"]})),
            -32603,
            "failed to spawn process: No such file or directory (os error 2)",
        ),
        (
            "spawn",
            spawn("ta\"ken", "", json!({})),
            -32600,
            "duplicate active process handle: \"ta\\\"ken\"",
        ),
        (
            "kill",
            json!({"processHandle": "ghost"}),
            -32600,
            "no active process for process handle \"ghost\"",
        ),
        (
            "writeStdin",
            json!({"processHandle": "ghost"}),
            -32602,
            "process/writeStdin requires deltaBase64 or closeStdin",
        ),
        (
            "writeStdin",
            json!({"processHandle": "ta\"ken", "deltaBase64": ""}),
            -32600,
            "stdin streaming is not enabled for this process",
        ),
        (
            "resizePty",
            json!({"processHandle": "ta\"ken", "size": {"rows": 1, "cols": 1}}),
            -32600,
            "failed to resize PTY: process is not attached to a PTY",
        ),
    ];
    for (method, params, code, text) in cases {
        let answer = client.call(&format!("process/{method}"), params).await;
        assert_eq!(fault(&answer), (code, text));
    }
    client.call("process/kill", json!({"processHandle": "ta\"ken"})).await;
    exited(&mut client, "ta\"ken").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_and_process_ids_are_separate() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    client.call("process/spawn", spawn("same", "hold", json!({}))).await;
    let begun = client.request("command/exec", run("hold", json!({"processId": "same"})));
    fixture.anchor.wait_for(2);
    client.call("command/exec/terminate", json!({"processId": "same"})).await;
    client.answer(begun).await;
    assert_eq!(fixture.anchor.wait_for_at_most(1).len(), 1);
    client.call("process/kill", json!({"processHandle": "same"})).await;
    fixture.anchor.wait_for_at_most(0);
}
