//! A client of the agent cannot ask for a sandbox; the server's default applies to its commands.

use lastbyte_engine::{Sandbox, Workspace};
use lastbyte_server::Sandboxing;
use serde_json::json;

use super::client::As;
use crate::harness::Server;

#[tokio::test]
async fn the_servers_default_applies() {
    let workspace = Workspace { slash_tmp: false, tmpdir: false, ..Workspace::default() };
    let default = Sandbox::WorkspaceWrite(workspace);
    let server = Server::sandboxed(Sandboxing { default, ..Sandboxing::default() }).await;
    let (work, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let command = "echo x >in && echo x >$OTHER/in || exit 7";
    let more = json!({ "workdir": work.path(), "env": {"OTHER": other.path()} });
    let id = As::nobody().start(&server, command, more).await;
    assert_eq!(As::nobody().ended(&server, &id).await["exit_code"], 7);
    assert!(work.path().join("in").exists());
    assert!(!other.path().join("in").exists());
    let shown = server.connect().await.get(&format!("/v1/processes/{id}")).await.json();
    assert_eq!(shown["sandbox"]["kind"], "workspace_write");
}
