//! A launch that cannot run is refused with a reason, and leaves nothing behind.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use lastbyte_engine::{EnvEdit, Errno, Launch, LaunchError, SpawnError, StartError, Status};
use lastbyte_testkit::{children_of, open_fds};

use crate::fixture::{Fixture, finish, finish_text, patiently};

async fn refusal(fixture: &Fixture, launch: Launch) -> StartError {
    fixture.engine.start(launch).await.expect_err("it cannot start")
}

fn write_program(path: &Path, text: &[u8], mode: u32) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_command_is_refused() {
    let fixture = Fixture::new();
    let no_arguments: [&str; 0] = [];
    for launch in [Launch::argv(no_arguments), Launch::argv([""]), Launch::shell("")] {
        assert_eq!(refusal(&fixture, launch).await, LaunchError::EmptyCommand.into());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_for_a_nul_byte_names_its_field() {
    let fixture = Fixture::new();
    let with_env = |name: &str, value: &str| Launch {
        env: vec![EnvEdit::Set(name.into(), value.into())],
        ..Launch::argv(["true"])
    };
    let in_cwd = Launch { cwd: Some("a\0b".into()), ..Launch::argv(["true"]) };
    for (launch, place) in [
        (Launch::argv(["true", "a\0b"]), "argument 1 "),
        (Launch::argv(["a\0b"]), "the command "),
        (Launch::shell("a\0b"), "the command "),
        (in_cwd, "the working directory "),
        (with_env("A\0", "b"), "the environment name "),
        (with_env("A", "b\0"), "the value of the environment variable \"A\" "),
    ] {
        let error = refusal(&fixture, launch).await;
        let StartError::Launch(LaunchError::Nul { .. }) = error else { panic!("{error:?}") };
        assert!(error.to_string().starts_with(place), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_environment_name_is_refused() {
    let fixture = Fixture::new();
    for name in ["", "A=B", "="] {
        for edit in [EnvEdit::Set(name.into(), "x".into()), EnvEdit::Unset(name.into())] {
            let launch = Launch { env: vec![edit], ..Launch::argv(["true"]) };
            let want = LaunchError::EnvName { name: name.into() };
            assert_eq!(refusal(&fixture, launch).await, want.into());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_exec_names_the_program_and_the_reason() {
    let fixture = Fixture::new();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).into_os_string();
    write_program(path("no-mode").as_ref(), b"#!/bin/sh\n", 0o644);
    write_program(path("no-format").as_ref(), b"\x01\x02\x03\x04", 0o755);
    write_program(path("no-interpreter").as_ref(), b"#!/no/such/shell\n", 0o755);
    let program = |program: OsString, errno| SpawnError::Program { program, errno };
    for (argv0, want) in [
        (path("missing"), program(path("missing"), Errno::NOENT)),
        (
            "lastbyte-no-such-program".into(),
            SpawnError::NotInPath { program: "lastbyte-no-such-program".into() },
        ),
        (path("no-mode"), program(path("no-mode"), Errno::ACCESS)),
        (folder.path().into(), SpawnError::Directory { program: folder.path().into() }),
        (path("no-format"), program(path("no-format"), Errno::NOEXEC)),
        (
            path("no-interpreter"),
            SpawnError::Interpreter { program: path("no-interpreter"), errno: Errno::NOENT },
        ),
    ] {
        assert_eq!(refusal(&fixture, Launch::argv([argv0])).await, want.into());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_are_too_long_are_reported_as_such() {
    let fixture = Fixture::new();
    let long = "x".repeat(200_000);
    for launch in [
        Launch::argv(["true", &long]),
        Launch {
            env: vec![EnvEdit::Set("A".into(), long.clone().into())],
            ..Launch::argv(["true"])
        },
    ] {
        let want = SpawnError::Program { program: "true".into(), errno: Errno::TOOBIG };
        assert_eq!(refusal(&fixture, launch).await, want.into());
    }
}

/// Agents run what they have just compiled: a start waits while the program is open for writing.
#[tokio::test(flavor = "multi_thread")]
async fn a_freshly_written_program_runs() {
    let fixture = Fixture::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fresh");
    std::fs::copy(lastbyte_testkit::testchild(), &path).unwrap();
    let busy = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    let launch = Launch::argv([path.as_os_str(), "print".as_ref(), "ran".as_ref()]);
    let start = fixture.engine.start(launch.clone());
    let close = async {
        tokio::task::yield_now().await;
        drop(busy);
    };
    let (started, ()) = tokio::join!(start, close);
    assert_eq!(finish_text(&started.expect("it starts").process).await.1, "ran");

    let busy = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    let want = SpawnError::Program { program: path.into(), errno: Errno::TXTBSY };
    assert_eq!(refusal(&fixture, launch).await, want.into(), "it is not waited for for ever");
    drop(busy);
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_not_utf_8_work_everywhere() {
    let fixture = Fixture::new();
    let bad = || OsString::from_vec(b"b\xff\xfed".into());
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().join(bad());
    std::fs::create_dir(&cwd).unwrap();
    std::fs::copy(lastbyte_testkit::testchild(), cwd.join(bad())).unwrap();
    let program = cwd.join(bad()).into_os_string();
    let mut argv = vec![program, "print".into(), bad(), "then".into(), "print-cwd".into()];
    argv.extend(["then".into(), "print-env".into(), bad()]);
    let mut launch = Launch::argv(argv);
    launch.cwd = Some(cwd.clone());
    launch.env = vec![EnvEdit::Set(bad(), bad())];
    let process = fixture.start_launch(launch).await;
    let want = [b"b\xff\xfed", cwd.as_os_str().as_encoded_bytes(), b"b\xff\xfed"].concat();
    assert_eq!(finish(&process).await.1, want);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_start_leaves_nothing_behind() {
    let fixture = Fixture::new();
    finish(&fixture.start("exit 0").await).await;
    let before = open_fds();
    for _ in 0..50 {
        refusal(&fixture, Launch::argv(["/no/such/program"])).await;
        refusal(&fixture, Launch { cwd: Some("/no/folder".into()), ..Launch::argv(["true"]) })
            .await;
    }
    patiently("descriptors are closed", async {
        while open_fds().len() > before.len() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(children_of(std::process::id()), Vec::<u32>::new());
    assert_eq!(fixture.files(), 0);
    let status = finish(&fixture.start("exit 0").await).await.0.status;
    assert_eq!(status, Status::Exited(0), "and it still works");
}
