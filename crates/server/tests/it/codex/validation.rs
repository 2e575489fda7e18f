//! Invalid requests, checked in the order of Codex.

use serde_json::{Value, json};

use super::fixture::{Fixture, fault, run};

/// Each has one error more than the next, and the first error is reported.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_error_in_the_order_of_codex_is_reported() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let holding = client.request("command/exec", run("hold", json!({"processId": "taken"})));
    fixture.anchor.wait_for(1);
    let cases = [
        ("command", json!([]), -32600, "command must not be empty"),
        (
            "sandboxPolicy",
            json!({"type": "readOnly"}),
            -32600,
            "`permissionProfile` cannot be combined with `sandboxPolicy`",
        ),
        ("tty", json!(false), -32602, "command/exec size requires tty: true"),
        (
            "disableOutputCap",
            json!(true),
            -32602,
            "command/exec cannot set both outputBytesCap and disableOutputCap",
        ),
        (
            "disableTimeout",
            json!(true),
            -32602,
            "command/exec cannot set both timeoutMs and disableTimeout",
        ),
        ("timeoutMs", json!(-7), -32602, "command/exec timeoutMs must be non-negative, got -7"),
        (
            "size",
            json!({"rows": 0, "cols": 80}),
            -32602,
            "command/exec size rows and cols must be greater than 0",
        ),
        (
            "processId",
            Value::Null,
            -32600,
            "command/exec tty or streaming requires a client-supplied processId",
        ),
        (
            "processId",
            json!("taken"),
            -32600,
            "duplicate active command/exec process id: \"taken\"",
        ),
    ];
    let good = json!({
        "command": ["no-such-program"], "processId": "free", "tty": true, "outputBytesCap": 1,
        "timeoutMs": 1000, "size": {"rows": 1, "cols": 1}, "permissionProfile": ":danger-full-access",
    });
    for first in 0..cases.len() {
        let mut params = good.clone();
        for (member, value, ..) in cases[first..].iter().rev() {
            params[member] = value.clone();
        }
        let answer = client.exec(params).await;
        let (member, _, code, text) = &cases[first];
        assert_eq!(fault(&answer), (*code, *text), "{member}");
    }
    let last = client.exec(good).await;
    assert!(fault(&last).1.starts_with("failed to spawn command: Unable to spawn no-such-program"));
    client.call("command/exec/terminate", json!({"processId": "taken"})).await;
    client.answer(holding).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_types_have_the_error_texts_of_codex() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let cases = [
        (json!({}), "missing field `command`"),
        (json!({"command": null}), "invalid type: null, expected a sequence"),
        (json!({"command": ["a", 1]}), "invalid type: integer `1`, expected a string"),
        (run("", json!({"timeoutMs": 1.5})), "invalid type: floating point `1.5`, expected i64"),
        (run("", json!({"tty": null})), "invalid type: null, expected a boolean"),
        (
            run("", json!({"size": {"rows": 70000, "cols": 1}})),
            "invalid value: integer `70000`, expected u16",
        ),
        (run("", json!({"size": {"rows": 7}})), "missing field `cols`"),
        (run("", json!({"env": {"A": 1}})), "invalid type: integer `1`, expected a string"),
        (run("", json!({"processId": 7})), "invalid type: integer `7`, expected a string"),
        (run("", json!({"sandboxPolicy": {}})), "missing field `type`"),
    ];
    for (params, want) in cases {
        let answer = client.exec(params).await;
        assert_eq!(fault(&answer), (-32600, format!("Invalid request: {want}").as_str()));
    }
    client.send(&json!({"id": 900, "method": "command/exec"}));
    let answer = client.answer(900).await;
    assert_eq!(fault(&answer), (-32600, "Invalid request: missing field `params`"));
    let negative = client.exec(run("", json!({"outputBytesCap": -1}))).await;
    assert!(fault(&negative).1.starts_with("Invalid request: invalid value: integer `-1`"));
}

#[tokio::test(flavor = "multi_thread")]
async fn control_requests_are_checked_before_their_target_is_looked_up() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let nobody = "no active command/exec for process id \"gh\\\"ost\"";
    let zero = "command/exec size rows and cols must be greater than 0";
    let cases = [
        ("write", json!({}), -32602, "command/exec/write requires deltaBase64 or closeStdin"),
        (
            "write",
            json!({"deltaBase64": "!"}),
            -32602,
            "invalid deltaBase64: Invalid symbol 33, offset 0.",
        ),
        ("write", json!({"deltaBase64": ""}), -32600, nobody),
        ("write", json!({"closeStdin": true}), -32600, nobody),
        ("resize", json!({"size": {"rows": 0, "cols": 1}}), -32602, zero),
        ("resize", json!({"size": {"rows": 1, "cols": 1}}), -32600, nobody),
        ("terminate", json!({}), -32600, nobody),
    ];
    for (method, mut params, code, text) in cases {
        params["processId"] = "gh\"ost".into();
        let answer = client.call(&format!("command/exec/{method}"), params).await;
        assert_eq!(fault(&answer), (code, text));
    }
}
