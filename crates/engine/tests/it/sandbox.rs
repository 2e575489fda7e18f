//! What a policy forbids does not happen, for any kind of command.

mod closed;
mod late;
mod protect;
mod refused;
mod replaced;
mod roots;
mod startup_files;
mod tools;

use std::path::Path;

use lastbyte_engine::{
    Enforcement, EnforcementChoice, Engine, History, Id, Launch, Network, Sandbox, Settings,
    Signal, Status, Streams, WindowSize, Workspace,
};
use lastbyte_testkit::Anchor;
use tokio::runtime::Runtime;

use crate::enforcements::enforcements_here;
use crate::fixture::{Fixture, finish_text};
use crate::home::{close, open};

/// Its state is not in `/tmp`, which every workspace policy can write.
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

/// A shell that can write only its own directory.
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

/// What the first confined start creates for all others belongs to the engine's runtime.
#[test]
fn confined_starts_work_from_several_runtimes() {
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
async fn a_terminal_works_under_every_policy() {
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

#[tokio::test]
async fn a_restart_knows_how_a_policy_was_enforced() {
    for enforcement in enforcements_here() {
        let state = folder();
        let mut settings = Settings { history: History::Journal, ..Settings::new(state.path()) };
        settings.enforcement = EnforcementChoice::Only(enforcement);
        let engine = Engine::new(settings.clone()).unwrap();
        let mut ids = Vec::new();
        for sandbox in [Sandbox::ReadOnly { network: Network::Off }, Sandbox::FullAccess] {
            let launch = Launch { sandbox, ..Launch::shell("true") };
            let process = engine.start(launch).await.unwrap().process;
            process.ended().await;
            ids.push(process.id());
        }
        close(engine).await;
        let engine = open(settings);
        let known = |id: &Id| engine.get(*id).unwrap().spec().enforcement;
        assert_eq!(ids.iter().map(known).collect::<Vec<_>>(), [Some(enforcement), None]);
    }
}

/// For machines that refuse clone3, such as some containers.
#[tokio::test]
async fn a_policy_applies_to_children_made_with_clone() {
    for enforcement in enforcements_here() {
        let mechanism = lastbyte_sys::spawn::Mechanism::Clone;
        let fixture = fixture_with(enforcement, |settings| settings.mechanism = mechanism);
        let folder = folder();
        let launch = shell("echo x > here && ! echo x > ../there", folder.path());
        let (status, text) = run(&fixture, launch).await;
        assert_eq!(status, Status::Exited(0), "{enforcement:?}: {text}");
    }
}

/// A system call of another architecture is the only refusal that a status shows.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn a_program_for_another_architecture_is_killed_and_this_is_reported() {
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
