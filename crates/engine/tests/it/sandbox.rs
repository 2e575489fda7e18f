//! What a policy forbids does not happen.

use lastbyte_engine::{Launch, Network, Sandbox, SandboxError, StartError, Workspace};

use crate::fixture::Fixture;

/// A policy is enforced or refused, never ignored.
#[tokio::test]
async fn a_policy_that_cannot_be_enforced_starts_nothing() {
    let fixture = Fixture::new();
    for sandbox in
        [Sandbox::ReadOnly { network: Network::On }, Sandbox::WorkspaceWrite(Workspace::default())]
    {
        let launch = Launch { sandbox, ..Launch::shell("true") };
        let refused = fixture.engine.start(launch).await.unwrap_err();
        assert_eq!(refused, StartError::Sandbox(SandboxError::NotEnforceable));
    }
}
