//! Policies are enforced, or the command is refused.

use std::path::Path;

use lastbyte_engine::{Network, Sandbox, Workspace};
use lastbyte_server::Ports;
use lastbyte_testkit::has_mount_namespaces;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::Client;
use super::fixture::{Fixture, fault, result, run};
use super::transport::Transport;

#[tokio::test(flavor = "multi_thread")]
async fn full_access_and_external_policies_run_without_a_sandbox() {
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

/// Tries to write in the directory of the request, in that of the server and in another one, and
/// returns a letter for each.
async fn writes(client: &mut Client, fixture: &Fixture, other: &TempDir, more: Value) -> String {
    let script = "for f in in $SERVER/in $OTHER/in; do \
                  if (echo x >$f) 2>/dev/null; then printf w; else printf -; fi; done";
    std::fs::create_dir_all(fixture.folder.path().join("deep")).unwrap();
    let mut params = json!({
        "command": ["sh", "-c", script], "disableTimeout": true, "cwd": "deep",
        "env": {"SERVER": fixture.folder.path(), "OTHER": other.path()},
    });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = client.exec(params).await;
    let (code, stdout, stderr) = result(&answer);
    assert_eq!((code, stderr), (0, ""), "{answer}");
    stdout.to_owned()
}

/// A policy that does not include the folders of a test by default.
fn workspace(more: Value) -> Value {
    let mut policy = json!({
        "type": "workspaceWrite", "excludeSlashTmp": true, "excludeTmpdirEnvVar": true
    });
    policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"sandboxPolicy": policy})
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_apply_on_every_transport() {
    if !has_mount_namespaces() {
        return;
    }
    for transport in Transport::ALL {
        let fixture = Fixture::new();
        policies_hold(&fixture, &mut transport.client(&fixture).await).await;
    }
}

async fn policies_hold(fixture: &Fixture, client: &mut Client) {
    let other = tempfile::tempdir().unwrap();
    let read_only = json!({"sandboxPolicy": {"type": "readOnly"}});
    assert_eq!(writes(client, fixture, &other, read_only).await, "---");
    let profile = json!({"permissionProfile": ":read-only"});
    assert_eq!(writes(client, fixture, &other, profile).await, "---");
    assert_eq!(writes(client, fixture, &other, workspace(json!({}))).await, "ww-");
    let roots = workspace(json!({"writableRoots": [other.path()]}));
    assert_eq!(writes(client, fixture, &other, roots).await, "www");
    let elsewhere = {
        let mut params = workspace(json!({}));
        params["cwd"] = json!(other.path());
        params
    };
    assert_eq!(
        writes(client, fixture, &other, elsewhere).await,
        "-w-",
        "the server's, not its own"
    );
}

/// Which of these a command in this directory can write, a letter for each. None is in
/// `/tmp`, which the profile can write, too.
async fn written(client: &mut Client, cwd: Value, files: [&Path; 3], more: &Value) -> String {
    let script = "for d in \"$@\"; do \
                  if (echo x >$d/in) 2>/dev/null; then printf w; else printf -; fi; done";
    let mut params = json!({
        "command": ["sh", "-c", script, "sh", files[0], files[1], files[2]],
        "disableTimeout": true, "cwd": cwd,
    });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = client.exec(params).await;
    let (code, stdout, stderr) = result(&answer);
    assert_eq!((code, stderr), (0, ""), "{answer}");
    stdout.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_workspace_of_a_profile_is_the_directory_of_the_command() {
    let folder = || tempfile::tempdir_in("/var/tmp").unwrap();
    let (server, other) = (folder(), folder());
    let child = server.path().join("child");
    std::fs::create_dir(&child).unwrap();
    let fixture = Fixture::with(|settings| settings.cwd = server.path().to_owned());
    let mut client = fixture.client().await;
    let files = [server.path(), &child, other.path()];
    let profile = json!({"permissionProfile": ":workspace"});
    assert_eq!(written(&mut client, json!("child"), files, &profile).await, "-w-");
    assert_eq!(written(&mut client, json!(other.path()), files, &profile).await, "--w");
    assert_eq!(written(&mut client, json!(null), files, &profile).await, "ww-");
    let policy = json!({"sandboxPolicy": {"type": "workspaceWrite"}});
    assert_eq!(written(&mut client, json!(child), files, &policy).await, "ww-");
    assert_eq!(written(&mut client, json!(other.path()), files, &policy).await, "ww-");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_applies_on_a_terminal() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let params = json!({
        "command": ["sh", "-c", "echo x >in || echo refused"], "processId": "t", "tty": true,
        "disableTimeout": true, "sandboxPolicy": {"type": "readOnly"}
    });
    assert_eq!(result(&client.exec(params).await).0, 0);
    let shown = String::from_utf8(client.output("t", "stdout")).unwrap();
    assert!(shown.ends_with("refused\r\n"), "{shown:?}");
    assert!(!fixture.folder.path().join("in").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_cannot_be_enforced_refuses_the_command() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let many: Vec<String> = (0..65).map(|number| format!("/{number}")).collect();
    let refused = [
        (workspace(json!({"writableRoots": ["/"]})), -32603, "exec failed: "),
        (workspace(json!({"writableRoots": ["/no such folder"]})), -32603, "exec failed: "),
        (workspace(json!({"writableRoots": many})), -32600, "invalid sandbox policy: "),
        (workspace(json!({"writableRoots": ["relative"]})), -32600, "Invalid request: "),
        (json!({"permissionProfile": ":other"}), -32600, "invalid permission profile: "),
    ];
    for (mut params, code, begin) in refused {
        // It is reported before the missing id.
        params["streamStdin"] = true.into();
        let answer = client.exec(run("join then hold", params)).await;
        let (got, text) = fault(&answer);
        assert!(got == code && text.starts_with(begin), "{answer}");
    }
    assert_eq!(fixture.anchor.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_network_is_refused_if_it_could_bypass_the_sandbox() {
    let fixture = Fixture::with(|settings| settings.sandboxing.ports = Ports::Open);
    let mut client = fixture.client().await;
    for kind in ["readOnly", "workspaceWrite"] {
        let policy = json!({"sandboxPolicy": {"type": kind, "networkAccess": true}});
        let answer = client.exec(run("join then hold", policy)).await;
        let (code, text) = fault(&answer);
        assert!(code == -32603 && text.starts_with("exec failed: "), "{answer}");
    }
    assert_eq!(fixture.anchor.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_default_applies_to_requests_without_a_policy() {
    let read_only = Sandbox::ReadOnly { network: Network::Off };
    let fixture = Fixture::with(|settings| settings.sandboxing.default = read_only);
    let (mut client, other) = (fixture.client().await, tempfile::tempdir().unwrap());
    assert_eq!(writes(&mut client, &fixture, &other, json!({})).await, "---");
    let full = json!({"sandboxPolicy": {"type": "dangerFullAccess"}});
    assert_eq!(writes(&mut client, &fixture, &other, full).await, "www");
}

/// Codex itself has no sandbox here, but a default must apply to all commands.
#[tokio::test(flavor = "multi_thread")]
async fn the_servers_default_applies_to_process_spawn() {
    if !has_mount_namespaces() {
        return;
    }
    let workspace = Workspace { slash_tmp: false, tmpdir: false, ..Workspace::default() };
    let fixture = Fixture::with(|settings| {
        settings.sandboxing.default = Sandbox::WorkspaceWrite(workspace);
    });
    let (mut client, other) = (fixture.client().await, tempfile::tempdir().unwrap());
    let script = "(echo x >$SERVER/in) 2>/dev/null; (echo x >in) 2>/dev/null || exit 7";
    let params = json!({
        "command": ["sh", "-c", script], "processHandle": "p", "cwd": other.path(),
        "env": {"SERVER": fixture.folder.path()},
    });
    client.call("process/spawn", params).await;
    let is_exited = |message: &&Value| message["method"] == "process/exited";
    let exited = client.until("it exits", |got| got.iter().find(is_exited).cloned()).await;
    assert_eq!(exited["params"]["exitCode"], 7);
    assert!(fixture.folder.path().join("in").exists());
    assert!(!other.path().join("in").exists());
}
