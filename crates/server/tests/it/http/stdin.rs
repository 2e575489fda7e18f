//! `POST …/stdin`.

use serde_json::json;

use crate::harness::Server;

#[tokio::test]
async fn a_repeated_write_arrives_once() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let started = json!({ "shell": "cat", "stdin": "open" });
    let started = client.post("/v1/processes", &started).await.json();
    let path = crate::harness::path(&started);
    for (query, bytes, accepted) in
        [("offset=0", "abc", 3), ("offset=0", "abc", 3), ("offset=2", "cde", 5), ("", "\u{0}f", 7)]
    {
        let answer = client.send("POST", &format!("{path}/stdin?{query}"), bytes.into()).await;
        assert_eq!(answer.json(), json!({ "accepted": accepted }));
    }
    let gap = client.send("POST", &format!("{path}/stdin?offset=9"), "x".into()).await;
    assert_eq!((gap.status, gap.code().as_str()), (409, "stdin_gap"));
    let closed = client.send("POST", &format!("{path}/stdin?close=true"), "".into()).await;
    assert_eq!(closed.status, 200);
    client.post(&format!("{path}/wait"), &json!({ "exit": true })).await;
    assert_eq!(client.get(&format!("{path}/output")).await.body, "abcde\0f");
    let late = client.send("POST", &format!("{path}/stdin"), "x".into()).await;
    assert_eq!((late.status, late.code().as_str()), (409, "process_exited"));
}

#[tokio::test]
async fn input_is_refused_if_stdin_is_closed_or_the_queue_is_full() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let (_anchor, path) = server.told(json!({})).await;
    let refused = client.send("POST", &format!("{path}/stdin"), "x".into()).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "stdin_not_open"));
    let (_anchor, path) = server.told(json!({ "stdin": "open" })).await;
    let full = vec![b'x'; 16 << 20];
    assert_eq!(client.send("POST", &format!("{path}/stdin"), full.into()).await.status, 200);
    let refused = client.send("POST", &format!("{path}/stdin"), vec![b'x'; 1 << 20].into()).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "stdin_full"));
    let stop = json!({ "stop": { "grace_ms": 0 } });
    let proof = client.post(&format!("{path}/stop"), &stop).await.json();
    assert_eq!(proof["left"], json!([]));
}

/// On a terminal that passes on each byte as it is.
#[tokio::test]
async fn keys_are_typed_after_the_text_as_a_terminal_sends_them() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let tty = json!({ "tty": { "rows": 24, "cols": 80 }, "stdin": "open" });
    let path = server.path_of("raw-terminal then print > then cat", tty).await;
    let past = |total: u64| json!({ "output_past": total });
    client.post(&format!("{path}/wait"), &past(0)).await;
    let typed = client.send("POST", &format!("{path}/stdin?keys=C-c,Enter,Up"), "x".into()).await;
    assert_eq!(typed.json(), json!({ "accepted": 6 }));
    client.post(&format!("{path}/wait"), &past(6)).await;
    assert_eq!(client.get(&format!("{path}/output?view=raw")).await.body, ">x\x03\r\x1b[A");
    // What it prints asks for the other cursor keys.
    client.send("POST", &format!("{path}/stdin"), "\x1b[?1h".into()).await;
    client.post(&format!("{path}/wait"), &past(11)).await;
    client.send("POST", &format!("{path}/stdin?keys=Up,C-Up&offset=11"), "".into()).await;
    client.post(&format!("{path}/wait"), &past(20)).await;
    let body = client.get(&format!("{path}/output?view=raw&from=12")).await.body;
    assert_eq!(body, "\x1bOA\x1b[1;5A");
}

#[tokio::test]
async fn a_key_that_cannot_be_typed_writes_nothing() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let path = server.path_of("cat", json!({ "stdin": "open" })).await;
    for (keys, message) in [
        ("C-c", "without a terminal"),
        ("Enter,Foo", "unknown key \"Foo\""),
        ("", "unknown key \"\""),
        ("a,,b", "unknown key \"\""),
    ] {
        let refused = client.send("POST", &format!("{path}/stdin?keys={keys}"), "x".into()).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_request"), "{keys}");
        let error = refused.json()["error"].clone();
        assert!(error["message"].as_str().unwrap().contains(message), "{error}");
        assert!(error["hint"].is_string(), "{error}");
    }
    client.send("POST", &format!("{path}/stdin?keys=a,Comma,Enter&close=true"), "".into()).await;
    client.post(&format!("{path}/wait"), &json!({ "exit": true })).await;
    assert_eq!(client.get(&format!("{path}/output")).await.body, "a,\n");
}

/// As a shell does that turns to single keys for its prompt: of the end of file that was typed before,
/// it reads a byte that means nothing.
#[tokio::test]
async fn a_program_that_missed_the_end_of_input_gets_it_again_once() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let tty = json!({ "tty": { "rows": 24, "cols": 80 }, "stdin": "open" });
    let (anchor, path) = server.told(tty).await;
    let closed = client.send("POST", &format!("{path}/stdin?close=true"), "".into()).await;
    assert_eq!(closed.status, 200);
    anchor.tell("print closed");
    client.post(&format!("{path}/wait"), &json!({ "output_past": 5 })).await;
    anchor.tell("raw-terminal");
    anchor.tell("cat");
    let past = json!({ "output_past": 7, "timeout_ms": 60_000 });
    let waited = client.post(&format!("{path}/wait"), &past).await.json();
    assert_eq!(waited["wait"]["met"], "output_past", "{waited}");
    let body = client.get(&format!("{path}/output?view=raw")).await.body;
    assert!(body.starts_with(b"closed") && body.ends_with(b"\x04"), "{body:?}");
    let silence = json!({ "silence_ms": 500, "output_past": 8 });
    let waited = client.post(&format!("{path}/wait"), &silence).await.json();
    assert_eq!(waited["wait"]["met"], "silence", "{waited}");
}
