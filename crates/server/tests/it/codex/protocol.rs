//! The envelope and the handshake.

use lastbyte_server::doors::codex::LocalExecution;
use serde_json::{Value, json};

use super::client::Client;
use super::fixture::{Fixture, fault, result, run};

#[tokio::test(flavor = "multi_thread")]
async fn before_the_handshake_requests_are_refused_after_their_shape_is_checked() {
    let fixture = Fixture::new();
    let mut client = Client::over_lines(&fixture.door);
    let early = client.exec(run("exit 0", json!({}))).await;
    assert_eq!(fault(&early), (-32600, "Not initialized"));
    let misshapen = client.exec(json!({"command": "ls"})).await;
    let text = "Invalid request: invalid type: string \"ls\", expected a sequence";
    assert_eq!(fault(&misshapen), (-32600, text));
    let unknown = client.call("no/such", json!({})).await;
    assert!(fault(&unknown).1.starts_with("Invalid request: unknown variant `no/such`, expected"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_handshake_is_refused() {
    let fixture = Fixture::new();
    let mut client = Client::over_lines(&fixture.door);
    let answer = client.initialize(Value::Null).await;
    let result = &answer["result"];
    assert_eq!(
        (&result["platformFamily"], &result["platformOs"]),
        (&json!("unix"), &json!("linux"))
    );
    let user_agent = result["userAgent"].as_str().unwrap();
    assert!(user_agent.starts_with("test/"), "{user_agent}");
    assert!(user_agent.ends_with(" lastbyte (test; 0)"), "{user_agent}");
    assert_eq!(result["codexHome"], fixture.folder.path().to_str().unwrap());
    let again = client.initialize(json!({})).await;
    assert_eq!(fault(&again), (-32600, "Already initialized"));
    let misshapen = client.call("initialize", json!({})).await;
    assert_eq!(fault(&misshapen), (-32600, "Invalid request: missing field `clientInfo`"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_name_that_is_not_a_valid_header_is_refused_and_can_be_corrected() {
    let fixture = Fixture::new();
    let mut client = Client::over_lines(&fixture.door);
    let params = json!({"clientInfo": {"name": "a\nb", "version": "0"}});
    let refused = client.call("initialize", params).await;
    let text = "Invalid clientInfo.name: 'a\nb'. Must be a valid HTTP header value.";
    assert_eq!(fault(&refused), (-32600, text));
    assert!(client.initialize(json!({})).await["result"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_agent_is_always_a_valid_header() {
    let fixture = Fixture::new();
    let mut client = Client::over_lines(&fixture.door);
    let params = json!({"clientInfo": {"name": "a b", "version": "1\n\u{e9}"}});
    let answer = client.call("initialize", params).await;
    let user_agent = answer["result"]["userAgent"].as_str().unwrap();
    assert!(user_agent.starts_with("a b/"), "{user_agent}");
    assert!(user_agent.ends_with(" (a b; 1__)"), "{user_agent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_local_execution_commands_are_refused_before_they_are_checked() {
    let fixture = Fixture::with(|settings| settings.local_execution = LocalExecution::Disabled);
    let mut client = fixture.client().await;
    let refused = (-32603, "local environment is not configured");
    let contradiction = json!({"outputBytesCap": 1, "disableOutputCap": true});
    for params in [json!({}), json!({"command": []}), contradiction] {
        let mut command = run("exit 0", json!({"processId": "p"}));
        command.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        assert_eq!(fault(&client.exec(command).await), refused);
    }
    for command in [json!(["true"]), json!([])] {
        let spawn = json!({"command": command, "processHandle": "h", "cwd": "/"});
        assert_eq!(fault(&client.call("process/spawn", spawn).await), refused);
    }
    // Shapes and capabilities are checked first, and other requests are not affected.
    let misshapen = client.exec(json!({"command": "ls"})).await;
    assert!(fault(&misshapen).1.starts_with("Invalid request: "));
    let terminate = client.call("command/exec/terminate", json!({"processId": "p"})).await;
    assert_eq!(fault(&terminate), (-32600, "no active command/exec for process id \"p\""));
    let mut client = fixture.client_with(json!({"experimentalApi": false})).await;
    let spawn = json!({"command": ["true"], "processHandle": "h", "cwd": "/"});
    let early = client.call("process/spawn", spawn).await;
    assert_eq!(fault(&early), (-32600, "process/spawn requires experimentalApi capability"));
}

#[test]
fn codex_exec_server_url_turns_local_execution_off() {
    let local_execution = |value: Option<&str>| {
        let variable = value.map(|value| ("CODEX_EXEC_SERVER_URL".into(), value.into()));
        LocalExecution::from_environment(&variable.into_iter().collect())
    };
    for value in [None, Some(""), Some("  ")] {
        assert_eq!(local_execution(value), LocalExecution::Enabled, "{value:?}");
    }
    for value in ["none", " NONE ", "ws://127.0.0.1:1"] {
        assert_eq!(local_execution(Some(value)), LocalExecution::Disabled, "{value}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn experimental_methods_need_the_capability() {
    let fixture = Fixture::new();
    let mut client = fixture.client_with(json!({"experimentalApi": false})).await;
    let handle = json!({"processHandle": "h"});
    let spawn = run("exit 0", json!({"processHandle": "h", "cwd": "/"}));
    let requests = [
        ("process/spawn", "process/spawn", spawn),
        ("process/kill", "process/kill", handle.clone()),
        ("process/writeStdin", "process/writeStdin", handle),
        (
            "command/exec",
            "command/exec.permissionProfile",
            run("exit 0", json!({"permissionProfile": ":read-only"})),
        ),
    ];
    for (method, what, params) in requests {
        let answer = client.call(method, params).await;
        let text = format!("{what} requires experimentalApi capability");
        assert_eq!(fault(&answer), (-32600, text.as_str()));
    }
    let answer = client.exec(run("print ok", json!({"permissionProfile": null}))).await;
    assert_eq!(result(&answer), (0, "ok", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_returned_as_sent_and_may_be_used_twice() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    for id in [json!("text"), json!(-5), json!("")] {
        let params = run("exit 0", json!({}));
        client
            .send(&json!({"jsonrpc": "2.0", "id": id, "method": "command/exec", "params": params}));
        let answer = client.until("its answer", |got| {
            got.iter().find(|message| message.get("id") == Some(&id)).cloned()
        });
        let answer = answer.await;
        let mut members: Vec<&String> = answer.as_object().unwrap().keys().collect();
        members.sort();
        assert_eq!(members, ["id", "result"]);
    }
    for word in ["one", "two"] {
        let params = run(&format!("print {word}"), json!({}));
        client.send(&json!({"id": 77, "method": "command/exec", "params": params}));
    }
    let words = client.until("two answers", |got| {
        let answers = got.iter().filter(|message| message["id"] == 77);
        let words: Vec<String> = answers.map(|answer| result(answer).1.to_owned()).collect();
        (words.len() == 2).then_some(words)
    });
    let mut words = words.await;
    words.sort();
    assert_eq!(words, ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_carry_the_time_and_can_be_opted_out_of() {
    let fixture = Fixture::new();
    let streamed = json!({"processId": "p", "streamStdoutStderr": true});
    let mut client = fixture.client().await;
    client.exec(run("print a", streamed.clone())).await;
    let delta = client.got.iter().find(|message| message.get("method").is_some()).unwrap();
    assert!(delta["emittedAtMs"].as_u64().unwrap() > 1_600_000_000_000, "{delta}");
    let opted_out = json!({"optOutNotificationMethods": ["command/exec/outputDelta"]});
    let mut client = fixture.client_with(opted_out).await;
    let answer = client.exec(run("write-bytes 200000", streamed)).await;
    assert_eq!(result(&answer), (0, "", ""));
    assert_eq!(answer["result"]["stdoutBytes"], 200_000);
    assert!(client.got.iter().all(|message| message.get("method").is_none()));
}
