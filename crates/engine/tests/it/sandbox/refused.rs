//! A policy is enforced or nothing starts, with an error that says why.

use lastbyte_engine::{
    Enforcement, EnforcementChoice, Errno, Launch, Missing, Needs, Sandbox, SandboxError,
    StartError, Workspace,
};
use lastbyte_sys::spawn::Step;

use super::{fixture, folder, shell};
use crate::enforcements::enforcements_here;
use crate::unprivileged::as_nobody;

async fn refused(enforcement: Enforcement, launch: Launch) -> SandboxError {
    match fixture(enforcement).engine.start(launch).await.unwrap_err() {
        StartError::Sandbox(error) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_policy_that_needs_mounts_does_not_start_without_them() {
    let folder = folder();
    let path = folder.path().join(".git");
    std::fs::create_dir(&path).unwrap();
    let launch = shell("touch ran", folder.path());
    let Sandbox::WorkspaceWrite(workspace) = launch.sandbox else { unreachable!() };
    let sandbox = Sandbox::WorkspaceWrite(Workspace { protect: vec![path.clone()], ..workspace });
    let error = refused(Enforcement::Landlock, Launch { sandbox, ..launch }).await;
    assert_eq!(error, SandboxError::NeedsNamespaces { needs: Needs::Protect { path } });
    assert!(!folder.path().join("ran").exists());
}

#[tokio::test]
async fn an_unavailable_enforcement_starts_nothing() {
    if !as_nobody("sandbox::refused::an_unavailable_enforcement_starts_nothing") {
        return;
    }
    let folder = folder();
    let error = refused(Enforcement::Mounts, shell("touch ran", folder.path())).await;
    let missing = Missing::Step { step: Step::Clone, errno: Errno::PERM };
    assert_eq!(error, SandboxError::NotEnforceable(missing));
    assert!(!folder.path().join("ran").exists());
}

/// The best enforcement for this user is chosen automatically.
#[tokio::test]
async fn the_best_enforcement_is_chosen() {
    if !as_nobody("sandbox::refused::the_best_enforcement_is_chosen") {
        return;
    }
    let folder = folder();
    let fixture = super::fixture_with(Enforcement::Landlock, |settings| {
        settings.enforcement = EnforcementChoice::Best;
    });
    let script = "echo x > here; echo x > ../there; chmod 600 here && echo changed";
    let (_, text) = super::run(&fixture, shell(script, folder.path())).await;
    assert!(folder.path().join("here").exists(), "{text}");
    // Landlock alone does not allow changing modes.
    let best = enforcements_here()[0];
    assert_eq!(text.ends_with("changed\n"), best == Enforcement::UserMounts, "{best:?}: {text}");
}
