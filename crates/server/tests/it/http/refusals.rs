//! Every invalid request gets an error that says what is wrong and where.

use serde_json::{Value, json};

use crate::harness::{Answer, Server};
use lastbyte_server::Limits;

async fn start(server: &Server, request: Value) -> Answer {
    server.connect().await.post("/v1/processes", &request).await
}

/// Status, code, and a part of the message.
fn check(answer: &Answer, status: u16, code: &str, part: &str) {
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!((answer.status, answer.code().as_str()), (status, code), "{message}");
    assert!(message.contains(part), "{message:?} has no {part:?}");
    assert_eq!(answer.head("content-type"), Some("application/json"));
}

#[tokio::test]
async fn an_invalid_start_is_refused_with_the_reason() {
    let server = Server::start().await;
    for (request, part) in [
        (json!({}), "neither `command` nor `shell`"),
        (json!({ "shell": "true", "command": ["true"] }), "both `command` and `shell`"),
        (json!({ "shell": "" }), "the command is empty"),
        (json!({ "command": [] }), "the command is empty"),
        (json!({ "shell": "true\u{0}" }), "NUL"),
        (json!({ "shell": "true", "env": { "A=B": "c" } }), "\"A=B\""),
        (json!({ "shell": "true", "cwd": "tmp" }), "`cwd` must be an absolute path"),
        (json!({ "shell": "true", "cwd": "" }), "`cwd` must be an absolute path"),
        (json!({ "shell": "true", "timeout": 3 }), "unknown field `timeout`"),
        (json!({ "shell": "true", "timeout_ms": -1 }), "invalid value: integer `-1`"),
        (json!({ "shell": "true", "stop": { "signal": "NOPE" } }), "\"NOPE\""),
        (json!({ "shell": "true", "tty": { "rows": 0, "cols": 1 } }), "greater than 0"),
        (json!({ "shell": "true", "quota_bytes": 1 }), "at least 128 KiB (131072 bytes)"),
        (json!({ "shell": "true", "stdin": { "base64": "?" } }), "base64"),
        (json!({ "shell": "true", "wait": {} }), "no condition to wait for"),
        (json!([["true"]]), "expected an object, got a list"),
        (json!({ "shell": "true", "tty": [24, 80] }), "invalid type: sequence, expected an object"),
        (json!({ "shell": "true", "key": "k".repeat(1025) }), "1024 bytes"),
        (json!({ "shell": "true", "session": "s".repeat(1025) }), "1024 bytes"),
        (json!({ "shell": "true", "labels": { "l": "x".repeat(16384) } }), "16384 bytes"),
        (json!({ "shell": "true", "wait": { "exit": true }, "max_bytes": 1_u64 << 40 }), "4194304"),
        (
            json!({ "shell": "true", "tty": { "rows": 1, "cols": 1 }, "streams": "split" }),
            "cannot be combined",
        ),
    ] {
        check(&start(&server, request).await, 400, "invalid_request", part);
    }
    let pattern = json!({ "shell": "true", "wait": { "pattern": "(" } });
    check(
        &start(&server, pattern).await,
        400,
        "invalid_pattern",
        "invalid regular expression: unclosed group",
    );
    let listed = server.connect().await.get("/v1/processes").await.json();
    assert_eq!(listed, json!({ "processes": [] }), "nothing was started");
}

#[tokio::test]
async fn a_value_of_the_wrong_type_is_refused_with_its_field() {
    let server = Server::start().await;
    for (mut request, message) in [
        (json!({ "timeout_ms": "x" }), "`timeout_ms`: invalid type: string \"x\", expected u64"),
        (json!({ "stop": { "grace_ms": -1 } }), "`stop.grace_ms`: invalid value: integer `-1`"),
        (json!({ "stop": { "grace": 1 } }), "`stop.grace`: unknown field `grace`"),
        (json!({ "env": { "A": 1 } }), "`env.A`: invalid type: integer `1`"),
        (json!({ "name": 1 }), "`name`: invalid type: integer `1`, expected a string"),
        // The field is named once.
        (json!({ "timeout": 1 }), "unknown field `timeout`"),
    ] {
        request["shell"] = json!("true");
        let answer = start(&server, request).await;
        check(&answer, 400, "invalid_request", &format!("invalid body: {message}"));
    }
}

#[tokio::test]
async fn a_failed_start_names_the_step() {
    let server = Server::start().await;
    let answer = start(&server, json!({ "command": ["/no/such/program"] })).await;
    check(&answer, 422, "program_not_found", "/no/such/program");
    let answer = start(&server, json!({ "command": ["/etc/passwd"] })).await;
    check(&answer, 422, "program_not_runnable", "/etc/passwd");
    let answer = start(&server, json!({ "shell": "true", "cwd": "/no/such/folder" })).await;
    check(&answer, 422, "bad_cwd", "/no/such/folder");
    assert!(answer.json()["error"]["hint"].is_string());
}

#[tokio::test]
async fn bodies_that_are_not_json_are_refused() {
    let server = Server::start().await;
    let deep = "[".repeat(100_000);
    let large = format!("{{\"shell\":\"{}\"", "x".repeat(1000));
    for body in ["{", "nonsense", "[1]", "\"text\"", "{\"shell\":\"\\ud800\"}", &deep, &large] {
        let mut client = server.connect().await;
        let answer = client.send("POST", "/v1/processes", body.to_owned().into()).await;
        check(&answer, 400, "invalid_request", "body: ");
    }
    let invalid = b"{\"shell\":\"\xff\"}".as_slice();
    let answer = server.connect().await.send("POST", "/v1/processes", invalid.into()).await;
    check(&answer, 400, "invalid_request", "invalid JSON in the body");
}

#[tokio::test]
async fn a_body_past_the_limit_is_refused() {
    let server = Server::with(Limits { body_bytes: 1000, ..Limits::default() }).await;
    let answer = start(&server, json!({ "shell": "x".repeat(1000) })).await;
    check(&answer, 413, "body_too_large", "1000 bytes");
}

#[tokio::test]
async fn invalid_ids_and_paths_are_not_found() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let id = "0198c2f0-0000-7000-8000-000000000000";
    for path in [id.to_owned(), id.to_uppercase(), id.replace('-', ""), "%ff".into(), "x".into()] {
        let answer = client.get(&format!("/v1/processes/{path}/output")).await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "process_not_found"), "{path}");
    }
    check(&client.get("/v2").await, 404, "route_not_found", "/v2");
    let answer = client.send("PUT", "/v1/processes", "".into()).await;
    check(&answer, 405, "method_not_allowed", "PUT");
    let number = "limit: expected a whole number";
    for limit in ["x", "", "-1", "1.5"] {
        let answer = client.get(&format!("/v1/processes?limit={limit}")).await;
        check(&answer, 400, "invalid_request", number);
    }
    let answer = client.get(&format!("/v1/processes?limit={}", "9".repeat(30))).await;
    check(&answer, 400, "invalid_request", "limit: the number is too large");
    check(&client.get("/v1/processes?limit=1001").await, 400, "invalid_request", "1000");
    check(&client.get("/v1/processes?color=red").await, 400, "invalid_request", "color");
}

#[tokio::test]
async fn an_id_that_is_not_utf8_is_named_as_it_was_sent() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for path in ["/v1/processes/%ff%fe", "/v1/processes/%ff%fe/output"] {
        let answer = client.get(path).await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "process_not_found"), "{path}");
        assert_eq!(
            answer.json()["error"]["message"],
            "no process with the id or name %ff%fe",
            "{path}"
        );
    }
}

#[tokio::test]
async fn waits_past_the_limit_are_refused() {
    let server = Server::with(Limits { waits: 1, ..Limits::default() }).await;
    let events = server.connect().await.begin("GET", "/v1/events", "".into()).await;
    let answer = start(&server, json!({ "shell": "true", "wait": { "exit": true } })).await;
    check(&answer, 503, "too_many_waits", "1 requests");
    drop(events);
    let listed = server.connect().await.get("/v1/processes").await.json();
    assert_eq!(listed, json!({ "processes": [] }), "nothing was started");
}
