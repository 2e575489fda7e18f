//! Waiting until a process waits for input.

use std::sync::Arc;

use lastbyte_testkit::Anchor;
use serde_json::{Value, json};

use crate::harness::{Server, env, held};

async fn wait(server: &Server, path: &str, conditions: Value) -> Value {
    let answer = server.connect().await.post(&format!("{path}/wait"), &conditions).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["wait"].clone()
}

async fn write(server: &Server, path: &str, bytes: &'static str) {
    let written = server.connect().await.send("POST", &format!("{path}/stdin"), bytes.into()).await;
    assert_eq!(written.status, 200, "{written:?}");
}

/// A wait that only fails after long.
fn until_needed() -> Value {
    json!({ "needs_input": true, "timeout_ms": 60_000 })
}

/// Several looks.
fn soon() -> Value {
    json!({ "needs_input": true, "timeout_ms": 400 })
}

fn terminal() -> Value {
    json!({ "tty": { "rows": 24, "cols": 80 }, "stdin": "open" })
}

fn pipe() -> Value {
    json!({ "stdin": "open" })
}

fn with_anchor(anchor: &Anchor, more: &Value) -> Value {
    let mut request = more.clone();
    request["env"] = env(anchor);
    request
}

#[tokio::test]
async fn a_process_that_reads_its_input_needs_it() {
    let server = Server::start().await;
    for (actions, more, on, secret) in [
        ("read-exactly 1", pipe(), "pipe", false),
        ("poll-stdin", pipe(), "pipe", false),
        ("epoll-stdin", pipe(), "pipe", false),
        ("read-in-thread", pipe(), "pipe", false),
        ("background sleep-ms 60000 end then read-exactly 1", pipe(), "pipe", false),
        ("read-exactly 1", terminal(), "terminal", false),
        ("poll-stdin", terminal(), "terminal", false),
        ("epoll-stdin", terminal(), "terminal", false),
        ("read-in-thread", terminal(), "terminal", false),
        ("read-terminal", terminal(), "terminal", false),
        ("raw-terminal then read-exactly 1", terminal(), "terminal", false),
        ("hide-typing then read-exactly 1", terminal(), "terminal", true),
        ("hide-typing then read-terminal", terminal(), "terminal", true),
        ("be-unreadable then hide-typing then read-terminal", terminal(), "terminal", true),
    ] {
        let anchor = Arc::new(Anchor::listen());
        let path = server.path_of(actions, with_anchor(&anchor, &more)).await;
        let met = wait(&server, &path, until_needed()).await;
        let pid = met["pid"].clone();
        let want = json!({ "met": "needs_input", "pid": pid, "name": "testchild", "on": on,
                           "secret": secret });
        assert_eq!(met, want, "{actions}");
    }
}

#[tokio::test]
async fn the_reader_is_named_whichever_process_it_is() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for (shell, more, want) in [
        ("read line", terminal(), "sh"),
        ("read line", pipe(), "sh"),
        ("cat; true", terminal(), "cat"),
        ("cat; true", pipe(), "cat"),
        ("sleep 60; read line", terminal(), ""),
        ("sleep 60 | cat; true", terminal(), ""),
        ("cat </dev/zero >/dev/null; true", terminal(), ""),
        ("tail -f /dev/null; true", terminal(), ""),
    ] {
        let mut request = more.clone();
        request["shell"] = json!(shell);
        let started = client.post("/v1/processes", &request).await.json();
        let path = crate::harness::path(&started);
        let conditions = if want.is_empty() { soon() } else { until_needed() };
        let met = wait(&server, &path, conditions).await;
        assert_eq!(met["name"].as_str().unwrap_or_default(), want, "{shell}: {met}");
        let stop = json!({ "stop": { "grace_ms": 0 } });
        client.post(&format!("{path}/stop"), &stop).await;
    }
}

#[tokio::test]
async fn one_that_does_not_read_does_not() {
    let server = Server::start().await;
    for (actions, more) in [
        ("sleep-ms 60000", pipe()),
        ("sleep-ms 60000", terminal()),
        ("spin", terminal()),
        ("hide-typing then sleep-ms 60000", terminal()),
        ("poll-stdin-and-listen", terminal()),
        ("poll-stdin-and-listen", pipe()),
        // Something beside the one that reads is at work.
        ("background spin end then read-exactly 1", terminal()),
        ("background spin end then read-exactly 1", pipe()),
        // Its output is what is waited for.
        ("background chatter 20 0 end then read-exactly 1", pipe()),
        // Another pipe, and another terminal, than the command's own.
        ("setsid-background read-terminal end then sleep-ms 60000", pipe()),
    ] {
        let anchor = Arc::new(Anchor::listen());
        let path = server.path_of(actions, with_anchor(&anchor, &more)).await;
        assert_eq!(wait(&server, &path, soon()).await, json!({ "met": "timeout" }), "{actions}");
    }
}

#[tokio::test]
async fn a_process_that_was_stopped_and_goes_on_still_needs_input() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for actions in ["poll-stdin", "read-exactly 1"] {
        let path = server.path_of(actions, pipe()).await;
        assert_eq!(wait(&server, &path, until_needed()).await["met"], "needs_input");
        client.post(&format!("{path}/signal"), &json!({ "signal": "STOP" })).await;
        assert_eq!(wait(&server, &path, soon()).await["met"], "timeout", "{actions}");
        client.post(&format!("{path}/signal"), &json!({ "signal": "CONT" })).await;
        assert_eq!(wait(&server, &path, until_needed()).await["met"], "needs_input", "{actions}");
    }
}

#[tokio::test]
async fn input_that_was_not_read_yet_is_no_need_for_more() {
    let server = Server::start().await;
    for more in [pipe(), terminal()] {
        let anchor = Arc::new(Anchor::listen());
        let path = server.path_of("hold", with_anchor(&anchor, &more)).await;
        held(&anchor, 1).await;
        write(&server, &path, "two\nlines\n").await;
        // It reads the first of them, and then nothing.
        anchor.tell("read-exactly 4");
        anchor.tell("hold");
        assert_eq!(wait(&server, &path, soon()).await, json!({ "met": "timeout" }));
    }
    // It waits to be told of more than there is.
    let path = server.path_of("epoll-stdin-twice", pipe()).await;
    write(&server, &path, "two\n").await;
    assert_eq!(wait(&server, &path, soon()).await, json!({ "met": "timeout" }));
    let path = server.path_of("read-exactly 4 then read-exactly 6", pipe()).await;
    write(&server, &path, "two\n").await;
    assert_eq!(wait(&server, &path, until_needed()).await["met"], "needs_input");
    write(&server, &path, "lines\n").await;
    assert_eq!(wait(&server, &path, until_needed()).await["met"], "exit");
}

#[tokio::test]
async fn a_program_that_may_not_be_looked_at_is_said_to_be_unknown() {
    let server = Server::start().await;
    let path = server.path_of("be-unreadable then read-exactly 1", terminal()).await;
    let met = wait(&server, &path, soon()).await;
    if rustix::process::geteuid().is_root() {
        assert_eq!(met["met"], "needs_input", "root may look at everything");
    } else {
        assert_eq!(
            (&met["met"], &met["input_unknown"]["name"]),
            (&json!("timeout"), &json!("testchild"))
        );
    }
}

#[tokio::test]
async fn without_input_the_wait_is_for_the_exit() {
    let server = Server::start().await;
    let only = json!({ "needs_input": true });
    let path = server.path_of("await-eof then sleep-ms 200", json!({})).await;
    assert_eq!(wait(&server, &path, only.clone()).await, json!({ "met": "exit" }));
    assert_eq!(wait(&server, &path, only.clone()).await, json!({ "met": "exit" }), "it has ended");
    // Closed while it is waited for.
    let (anchor, path) = server.told(pipe()).await;
    let waiting = wait(&server, &path, only.clone());
    let closing = async {
        let close = format!("{path}/stdin?close=true");
        assert_eq!(server.connect().await.send("POST", &close, "".into()).await.status, 200);
        anchor.tell("exit 0");
    };
    assert_eq!(tokio::join!(waiting, closing).0, json!({ "met": "exit" }));
    // A survivor holds the output open.
    let anchor = Arc::new(Anchor::listen());
    let actions = "background hold end then exit 0";
    let path = server.path_of(actions, with_anchor(&anchor, &pipe())).await;
    assert_eq!(wait(&server, &path, only).await, json!({ "met": "exit" }));
}

#[tokio::test]
async fn a_start_and_a_wait_for_several_take_it_too() {
    let server = Server::start().await;
    let mut first = terminal();
    first["wait"] = until_needed();
    first["session"] = json!("s");
    let started = server.start_child(r"print name?\x20 then read-exactly 1", first.clone()).await;
    assert_eq!(started["wait"]["met"], "needs_input");
    assert_eq!(started["output"]["content"]["head"], "name? ", "{started}");
    server.start_child("read-exactly 1", first).await;
    let all = json!({ "select": { "session": "s" }, "wait": until_needed() });
    let all = server.connect().await.post("/v1/wait", &all).await.json();
    for outcome in all["processes"].as_array().unwrap() {
        assert_eq!(outcome["wait"]["met"], "needs_input", "{outcome}");
    }
    let nothing = json!({ "needs_input": false });
    let path = crate::harness::path(&started);
    let refused = server.connect().await.post(&format!("{path}/wait"), &nothing).await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_request"));
}
