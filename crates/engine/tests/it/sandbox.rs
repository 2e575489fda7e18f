//! What a policy forbids does not happen.

use lastbyte_engine::{
    Enforcement, EnforcementChoice, Launch, Network, Sandbox, Status, Workspace,
};

use crate::fixture::{Fixture, finish_text};

fn fixture(enforcement: Enforcement) -> Fixture {
    Fixture::with(|settings| settings.enforcement = EnforcementChoice::Only(enforcement))
}

/// Without `/tmp`, in which the state folders of tests lie.
fn workspace() -> Workspace {
    Workspace { slash_tmp: false, tmpdir: false, ..Workspace::default() }
}

#[tokio::test]
async fn a_read_only_command_reads_and_writes_nothing() {
    for enforcement in Enforcement::ALL {
        let fixture = fixture(enforcement);
        let folder = tempfile::tempdir().unwrap();
        let sandbox = Sandbox::ReadOnly { network: Network::Off };
        let launch = Launch {
            sandbox,
            cwd: Some(folder.path().to_owned()),
            ..Launch::shell(
                "head -c 4 /etc/passwd; echo x > file; echo y > /dev/null; id -u; touch /etc/x",
            )
        };
        let process = fixture.start_launch(launch).await;
        let (status, text) = finish_text(&process).await;
        println!("{enforcement:?} {text}");
        assert_eq!(status, Status::Exited(1), "{enforcement:?}: {text}");
        assert!(!folder.path().join("file").exists());
    }
}

#[tokio::test]
async fn a_workspace_can_be_written_and_nothing_else() {
    for enforcement in Enforcement::ALL {
        let fixture = fixture(enforcement);
        let folder = tempfile::tempdir().unwrap();
        let launch = Launch {
            sandbox: Sandbox::WorkspaceWrite(workspace()),
            cwd: Some(folder.path().to_owned()),
            ..Launch::shell(
                "echo x > file && mkdir a && mv file a && cat a/file; echo y > ../file$$; cat /proc/self/mountinfo",
            )
        };
        let process = fixture.start_launch(launch).await;
        let (status, text) = finish_text(&process).await;
        println!("{enforcement:?} {text}");
        assert_eq!(status, Status::Exited(0), "{enforcement:?}: {text}");
        assert!(folder.path().join("a/file").exists());
    }
}
