//! Policies: what cannot be enforced is refused, and never ignored.

use lastbyte_engine::{Network, Sandbox};
use serde_json::json;

use super::fixture::{Fixture, fault, result, run};

#[tokio::test(flavor = "multi_thread")]
async fn without_a_sandbox_a_command_runs_where_that_is_what_was_asked_for() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let policies = [
        json!({}),
        json!({"sandboxPolicy": null}),
        json!({"sandboxPolicy": {"type": "dangerFullAccess"}}),
        json!({"sandboxPolicy": {"type": "externalSandbox", "networkAccess": "enabled"}}),
        json!({"permissionProfile": ":danger-full-access"}),
    ];
    for policy in policies {
        assert_eq!(result(&client.exec(run("print ran", policy)).await), (0, "ran", ""));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_cannot_be_enforced_refuses_the_command() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let refused = [
        (json!({"sandboxPolicy": {"type": "readOnly"}}), -32603, "exec failed: "),
        (json!({"sandboxPolicy": {"type": "workspaceWrite"}}), -32603, "exec failed: "),
        (json!({"permissionProfile": ":read-only"}), -32603, "exec failed: "),
        (json!({"permissionProfile": ":workspace"}), -32603, "exec failed: "),
        (json!({"permissionProfile": ":other"}), -32600, "invalid permission profile: "),
    ];
    for (policy, code, begin) in refused {
        let answer = client.exec(run("join then hold", policy)).await;
        let (got, text) = fault(&answer);
        assert!(got == code && text.starts_with(begin), "{answer}");
    }
    assert_eq!(fixture.anchor.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_of_the_server_holds_for_requests_that_name_none() {
    let read_only = Sandbox::ReadOnly { network: Network::Off };
    let fixture = Fixture::with(|settings| settings.sandboxing.default = read_only);
    let mut client = fixture.client().await;
    assert_eq!(fault(&client.exec(run("exit 0", json!({}))).await).0, -32603);
    let full = json!({"sandboxPolicy": {"type": "dangerFullAccess"}});
    assert_eq!(result(&client.exec(run("exit 0", full)).await).0, 0);
}
