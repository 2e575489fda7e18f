//! A back end without streaming refuses the rest, in the order of Codex.

use lastbyte_server::doors::codex::Streaming;
use serde_json::{Value, json};

use super::fixture::{Fixture, child, fault, result};

/// Parameters of a `testchild` with the default time.
fn run(actions: &str, more: Value) -> Value {
    let mut params = json!({"command": child(actions)});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_requests_are_refused_in_the_order_of_codex() {
    let fixture = Fixture::with(|settings| settings.streaming = Streaming::Unsupported);
    let mut client = fixture.client().await;
    let streaming = "streaming command/exec is not supported with windows sandbox";
    let cap = "custom outputBytesCap is not supported with windows sandbox";
    let cases = [
        (
            json!({"disableTimeout": true, "tty": true, "processId": "p", "disableOutputCap": true}),
            "disableTimeout is not supported with windows sandbox",
        ),
        (json!({"streamStdin": true, "processId": "p", "outputBytesCap": 1}), streaming),
        (json!({"streamStdoutStderr": true, "processId": "p"}), streaming),
        (json!({"tty": true, "processId": "p"}), streaming),
        (json!({"outputBytesCap": 1}), cap),
        (json!({"disableOutputCap": true}), cap),
        (
            json!({"tty": true}),
            "command/exec tty or streaming requires a client-supplied processId",
        ),
    ];
    for (more, text) in cases {
        assert_eq!(fault(&client.exec(run("exit 0", more)).await), (-32600, text));
    }
    let whole =
        client.exec(run("print ok", json!({"outputBytesCap": 1048576, "timeoutMs": 60000}))).await;
    assert_eq!(result(&whole), (0, "ok", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_streaming_cannot_be_controlled() {
    let fixture = Fixture::with(|settings| settings.streaming = Streaming::Unsupported);
    let mut client = fixture.client().await;
    let begun =
        client.request("command/exec", run("hold", json!({"processId": "p", "timeoutMs": 60000})));
    fixture.anchor.wait_for(1);
    let text = "command/exec/write, command/exec/terminate, and command/exec/resize are not \
                supported for windows sandbox processes";
    for (method, more) in [
        ("terminate", json!({})),
        ("write", json!({"deltaBase64": ""})),
        ("resize", json!({"size": {"rows": 1, "cols": 1}})),
    ] {
        let mut params = more;
        params["processId"] = "p".into();
        let answer = client.call(&format!("command/exec/{method}"), params).await;
        assert_eq!(fault(&answer), (-32600, text));
    }
    let duplicate = client.exec(run("exit 0", json!({"processId": "p"}))).await;
    assert_eq!(fault(&duplicate).1, "duplicate active command/exec process id: \"p\"");
    fixture.anchor.tell("exit 2");
    assert_eq!(result(&client.answer(begun).await).0, 2);
}
