//! What a policy forbids does not happen, whatever the command is like.

mod late;
mod protect;
mod refused;
mod replaced;
mod roots;
mod startup_files;
mod tools;

use std::path::Path;

use lastbyte_engine::{
    Enforcement, EnforcementChoice, Engine, Launch, Network, Sandbox, Settings, Signal, Status,
    Streams, WindowSize, Workspace,
};
use lastbyte_testkit::Anchor;
use tokio::runtime::Runtime;

use crate::enforcements::enforcements_here;
use crate::fixture::{Fixture, finish_text};

/// Its state does not lie in `/tmp`, which is part of a workspace.
fn fixture(enforcement: Enforcement) -> Fixture {
    fixture_with(enforcement, |_| {})
}

fn fixture_with(enforcement: Enforcement, change: impl FnOnce(&mut Settings)) -> Fixture {
    let state = folder();
    let mut settings = Settings::new(state.path());
    settings.enforcement = EnforcementChoice::Only(enforcement);
    change(&mut settings);
    Fixture { engine: Engine::new(settings).unwrap(), anchor: Anchor::listen(), state }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

/// A shell that may write its own directory and nothing else.
fn shell(text: &str, cwd: &Path) -> Launch {
    let workspace = Workspace { slash_tmp: false, tmpdir: false, ..Workspace::default() };
    Launch {
        sandbox: Sandbox::WorkspaceWrite(workspace),
        cwd: Some(cwd.to_owned()),
        ..Launch::shell(text)
    }
}

async fn run(fixture: &Fixture, launch: Launch) -> (Status, String) {
    let process = fixture.start_launch(launch).await;
    finish_text(&process).await
}

/// What the first confined start makes for all others is of the engine's runtime, not the caller's.
#[test]
fn a_confined_start_from_another_runtime_is_one_and_so_are_those_after_it() {
    for enforcement in enforcements_here() {
        let engines = Runtime::new().unwrap();
        let fixture = engines.block_on(async { fixture(enforcement) });
        let (inside, outside) = (folder(), folder());
        let text = format!("echo in > f; echo out > {}/f; cat f", outside.path().display());
        let confined = async || {
            let (status, said) = run(&fixture, shell(&text, inside.path())).await;
            assert_eq!(status, Status::Exited(0), "{enforcement:?} {said}");
            assert!(said.ends_with("in\n"), "{enforcement:?} {said}");
            assert!(!outside.path().join("f").exists(), "{enforcement:?} {said}");
        };
        let callers = Runtime::new().unwrap();
        callers.block_on(confined());
        drop(callers);
        engines.block_on(confined());
    }
}

#[tokio::test]
async fn a_terminal_is_a_terminal_under_every_policy() {
    for enforcement in enforcements_here() {
        let (fixture, folder) = (fixture(enforcement), folder());
        let text =
            "test -t 1 && stty size < /dev/tty && echo seen > /dev/tty && ! echo x 2>&1 > /etc/x";
        for sandbox in [
            Sandbox::ReadOnly { network: Network::Off },
            Sandbox::WorkspaceWrite(Workspace::default()),
        ] {
            let streams = Streams::Pty(WindowSize { rows: 7, cols: 33 });
            let launch = Launch { sandbox, streams, ..shell(text, folder.path()) };
            let (status, text) = run(&fixture, launch).await;
            assert_eq!(status, Status::Exited(0), "{enforcement:?}: {text}");
            assert!(text.starts_with("7 33\r\nseen\r\n"), "{text}");
        }
    }
}

/// Where clone3 is refused, as in some containers.
#[tokio::test]
async fn a_policy_holds_for_children_of_the_older_call() {
    for enforcement in enforcements_here() {
        let mechanism = lastbyte_sys::spawn::Mechanism::Clone;
        let fixture = fixture_with(enforcement, |settings| settings.mechanism = mechanism);
        let folder = folder();
        let launch = shell("echo x > here && ! echo x > ../there", folder.path());
        let (status, text) = run(&fixture, launch).await;
        assert_eq!(status, Status::Exited(0), "{enforcement:?}: {text}");
    }
}

/// The one thing that a status can tell: a call by the numbers of a processor that is none.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn a_program_for_another_processor_is_killed_and_that_is_told() {
    let program = "import ctypes, mmap\n\
                   code = mmap.mmap(-1, 4096, prot=7)\n\
                   code.write(bytes.fromhex('b814000000cd80c3'))\n\
                   at = ctypes.addressof(ctypes.c_char.from_buffer(code))\n\
                   print(ctypes.CFUNCTYPE(ctypes.c_int)(at)())";
    let (fixture, sandbox) =
        (fixture(Enforcement::Landlock), Sandbox::ReadOnly { network: Network::Off });
    let launch = Launch { sandbox: sandbox.clone(), ..Launch::argv(["python3", "-c", program]) };
    let (status, text) = run(&fixture, launch).await;
    let killed = matches!(status, Status::Signalled { signal: Signal::SYS, .. });
    assert!(killed, "{status:?} {text}");
    assert!(sandbox.denied(status));
    assert!(!Sandbox::FullAccess.denied(status));
    assert!(!sandbox.denied(Status::Exited(1)));
}
