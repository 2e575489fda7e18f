//! Policies on the command line.

use std::os::unix::net::UnixStream;
use std::process::Command;

use lastbyte_testkit::{eventually, has_mount_namespaces};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::harness::{Fixture, check, finish, send, start};

#[test]
fn options_of_a_sandbox_are_refused_without_one() {
    let of_a_workspace =
        |option| format!("lastbyte: {option} requires --sandbox workspace-write\n");
    check(&["--writable", "x", "true"], 2, "", &of_a_workspace("--writable"));
    let read_only = ["--sandbox", "read-only", "--protect", "x", "true"];
    check(&read_only, 2, "", &of_a_workspace("--protect"));
    let network = "lastbyte: --network requires --sandbox read-only or workspace-write; without a \
                   sandbox, commands can use the network anyway\n";
    check(&["--network", "true"], 2, "", network);
    check(&["--network", "--sandbox", "external", "true"], 2, "", network);
}

#[test]
fn an_external_sandbox_does_not_restrict_and_says_so() {
    let said = "lastbyte: the sandbox is external: lastbyte does not restrict the command\n";
    check(&["--sandbox", "external", "echo ran"], 0, "ran\n", said);
    check(&["--sandbox", "full-access", "echo ran"], 0, "ran\n", "");
    let daemon = Daemon::start();
    let started = daemon.finish(&["start", "--sandbox", "external", "true"]);
    assert_eq!((started.code, started.stderr.as_str()), (Some(0), said));
    let shown = daemon.result(&["show", started.stdout.trim()]);
    assert!(shown.contains("sandbox    none: external\n"), "{shown}");
    assert!(daemon.result(&["ps"]).contains("  external  "));
}

#[test]
fn a_process_shows_that_it_has_no_sandbox() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "exit 0");
    let shown: Value = serde_json::from_str(&daemon.result(&["show", &id, "--json"])).unwrap();
    assert_eq!(shown["sandbox"], serde_json::json!({"kind": "full_access"}));
    assert!(daemon.result(&["show", &id]).contains("sandbox    none: full access\n"));
}

/// A workspace and another folder. Neither is in `/tmp`, which every workspace policy can write.
fn folders() -> (TempDir, TempDir) {
    let folder = || tempfile::tempdir_in("/var/tmp").unwrap();
    (folder(), folder())
}

/// Tries to write in its directory and in another one, and prints a letter for each.
const ATTEMPTS: &str = "for f in in $OTHER/in; do \
                        if (echo x >$f) 2>/dev/null; then printf w; else printf -; fi; done";

#[test]
fn a_policy_applies_to_run() {
    if !has_mount_namespaces() {
        return;
    }
    let fixture = Fixture::new();
    // Names the startup files that it creates in the home, which is in /tmp.
    finish(fixture.run(&["--sandbox", "workspace-write", "true"]));
    let (work, other) = folders();
    let printed = |options: &[&str]| {
        let mut command = fixture.run(options);
        command.arg(ATTEMPTS).current_dir(work.path()).env("OTHER", other.path());
        let finished = finish(command);
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{options:?}");
        finished.stdout
    };
    assert_eq!(printed(&[]), "ww");
    assert_eq!(printed(&["--sandbox", "read-only"]), "--");
    assert_eq!(printed(&["--sandbox", "read-only", "--tty"]), "--");
    assert_eq!(printed(&["--sandbox", "workspace-write"]), "w-");
    assert_eq!(printed(&["--sandbox", "workspace-write", "--protect", "in"]), "--");
    let other = format!("../{}", other.path().file_name().unwrap().to_str().unwrap());
    let named = ["--sandbox", "workspace-write", "--writable", &other];
    assert_eq!(printed(&named), "ww", "as the caller sees it");
}

#[test]
fn a_policy_applies_to_start_and_is_shown() {
    if !has_mount_namespaces() {
        return;
    }
    let daemon = Daemon::start();
    // Names the startup files that it creates in the home, which is in /tmp.
    daemon.finish(&["start", "--sandbox", "workspace-write", "true"]);
    let (work, other) = folders();
    let mut command = daemon.lastbyte(&["start", "--sandbox", "workspace-write", "--network"]);
    command.arg(ATTEMPTS).current_dir(work.path()).env("OTHER", other.path());
    let started = finish(command);
    assert_eq!((started.code, started.stderr.as_str()), (Some(0), ""));
    assert_eq!(daemon.result(&["logs", "-f", started.stdout.trim()]), "w-");
    let shown = daemon.result(&["show", started.stdout.trim()]);
    let policy = "sandbox    workspace-write: its directory, /tmp, $TMPDIR; with network\n";
    assert!(shown.contains(policy), "{shown}");
    assert!(daemon.result(&["ps"]).contains("  workspace-write  "));
}

#[test]
fn a_policy_is_still_known_after_a_crash() {
    let mut daemon = Daemon::start();
    let id = daemon.testchild(&["--sandbox", "read-only"], "exit 0");
    daemon.finish(&["wait", &id]);
    daemon.kill();
    daemon.start_again();
    assert!(daemon.result(&["show", &id]).contains("sandbox    read-only, no network\n"));
}

#[test]
fn a_missing_root_starts_nothing() {
    let finished = finish(Fixture::new().run(&[
        "--sandbox",
        "workspace-write",
        "--writable",
        "/no such folder",
        "echo ran",
    ]));
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(125), ""));
    assert!(finished.stderr.contains("/no such folder"), "{finished:?}");
    let advice = "; --writable needs an existing directory\n";
    assert!(finished.stderr.ends_with(advice), "{finished:?}");
}

#[test]
fn the_default_sandbox_applies_to_commands_without_a_policy() {
    let daemon = Daemon::with(&["--default-sandbox", "read-only"]);
    let (work, other) = folders();
    let printed = |options: &[&str]| {
        let mut command = daemon.lastbyte(&["start"]);
        command.args(options).arg(ATTEMPTS).current_dir(work.path()).env("OTHER", other.path());
        daemon.result(&["logs", "-f", finish(command).stdout.trim()])
    };
    assert_eq!(printed(&[]), "--");
    assert_eq!(printed(&["--sandbox", "full-access"]), "ww");
}

/// Nothing that it writes may run later, neither in a server nor at login.
#[test]
fn a_sandboxed_command_in_a_home_cannot_write_settings_or_startup_files() {
    let fixture = Fixture::new();
    let home = fixture.home.path();
    assert!(!home.join("config/lastbyte").exists(), "it is not there, and could be made");
    let script = "for f in $XDG_CONFIG_HOME/lastbyte/config.toml .bashrc .ssh/rc file; do \
                  mkdir -p $(dirname $f) 2>/dev/null; \
                  if (echo x >$f) 2>/dev/null; then printf w; else printf -; fi; done";
    let printed = |options: &[&str]| {
        let mut command = fixture.run(options);
        command.arg(script).current_dir(home).env("HOME", home);
        finish(command).stdout
    };
    assert_eq!(printed(&["--sandbox", "workspace-write"]), "---w");
    let allowed = ["--sandbox", "workspace-write", "--allow-startup-files"];
    assert_eq!(printed(&allowed), "-www");
    assert_eq!(std::fs::read_dir(home.join("config/lastbyte")).unwrap().count(), 0);
    let of_a_workspace = "lastbyte: --allow-startup-files requires --sandbox workspace-write\n";
    check(&["--allow-startup-files", "true"], 2, "", of_a_workspace);
}

#[test]
fn files_that_a_sandbox_creates_are_named_once() {
    if !has_mount_namespaces() {
        return;
    }
    let daemon = Daemon::start();
    let home = daemon.fixture.home.path();
    let options = ["--sandbox", "workspace-write", "--cwd", home.to_str().unwrap(), "true"];
    for command in ["run", "start"] {
        // It exists after the first of them.
        _ = std::fs::remove_dir(home.join(".ssh"));
        let first = daemon.finish(&[&[command], &options[..]].concat());
        assert_eq!(first.code, Some(0), "{first:?}");
        let reason = "so that the sandbox can protect them: only what exists can be protected";
        let (created, _) = first.stderr.split_once(reason).expect("a warning");
        assert!(created.starts_with("lastbyte: warning: created "), "{first:?}");
        assert!(created.contains(".ssh") && created.contains(home.to_str().unwrap()), "{first:?}");
        let second = daemon.finish(&[&[command], &options[..]].concat());
        assert_eq!((second.code, second.stderr.as_str()), (Some(0), ""));
    }
}

#[test]
fn a_workspace_replaced_by_a_link_is_refused() {
    let fixture = Fixture::new();
    let (area, other) = folders();
    let work = area.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let run = |cwd: &std::path::Path, script: &str| {
        let mut command = fixture.run(&["--sandbox", "workspace-write", "--cwd"]);
        command.arg(cwd).arg(script).env("OTHER", other.path());
        finish(command)
    };
    assert_eq!(run(area.path(), "mv work gone && ln -s $OTHER work").code, Some(0));
    let refused = run(&work, "echo x > made");
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(125), ""));
    assert!(refused.stderr.contains("symbolic link"), "{refused:?}");
    assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
}

/// The command can see the socket: it is the server that refuses.
#[test]
fn a_sandboxed_command_gets_nothing_from_the_daemon() {
    if !has_mount_namespaces() {
        return;
    }
    let (place, _) = folders();
    let socket = place.path().join("socket");
    let socket = socket.to_str().unwrap();
    let daemon = Daemon::with(&["--socket", socket]);
    let ask = format!("$LASTBYTE ps --socket {socket}");
    let refused = |asking: &str, command: Command| {
        let finished = finish(command);
        assert!(finished.stderr.contains("is in a sandbox"), "{asking}: {finished:?}");
        assert_ne!(finished.code, Some(0));
    };
    let network = ["--sandbox", "read-only", "--network"];
    refused("of a run", {
        let mut command = daemon.fixture.run(&network);
        command.arg(&ask);
        command
    });
    // From another session, with no parent left.
    let orphan = format!("(setsid sh -c '{ask} >seen 2>&1; echo $? >done' &) </dev/null");
    let work = tempfile::tempdir().unwrap();
    let mut command = daemon.lastbyte(&["start", "--socket", socket]);
    command.args(["--sandbox", "workspace-write", "--network", &orphan]).current_dir(work.path());
    assert_eq!(finish(command).code, Some(0));
    eventually("the orphan is answered", || work.path().join("done").exists());
    let seen = std::fs::read_to_string(work.path().join("seen")).unwrap();
    assert!(seen.contains("is in a sandbox"), "{seen}");
    let list = daemon.result(&["ps", "--socket", socket]);
    assert_eq!(list.lines().count(), 2, "and others are answered: {list}");
}

#[test]
fn a_client_in_a_sandbox_without_network_is_told_so() {
    let (place, _) = folders();
    let socket = place.path().join("socket").display().to_string();
    let daemon = Daemon::with(&["--socket", &socket]);
    let ask = format!("$LASTBYTE ps --socket {socket}");
    let mut command = daemon.fixture.run(&["--sandbox", "read-only"]);
    command.arg(ask);
    let finished = finish(command);
    let want = format!(
        "lastbyte: cannot connect to unix:{socket}: Operation not permitted (os error 1); this \
         command runs in a sandbox without network\n"
    );
    assert_eq!((finished.code, finished.stderr), (Some(125), want));
}

#[test]
fn a_sandboxed_command_sees_neither_socket_nor_token_nor_output() {
    if !has_mount_namespaces() {
        return;
    }
    let (daemon, _) = Daemon::on_a_port();
    let home = daemon.fixture.home.path();
    let (state, runtime) = (home.join("state/lastbyte"), home.join("runtime/lastbyte"));
    assert!(state.join("token").exists() && runtime.join("socket").exists());
    let look = format!("ls -A {} {}", state.display(), runtime.display());
    let nothing = format!("{}:\n\n{}:\n", runtime.display(), state.display());
    for options in [["--sandbox", "read-only"], ["--sandbox", "workspace-write"]] {
        let mut started = daemon.lastbyte(&["start"]);
        started.args(options).arg(&look);
        let id = finish(started).stdout;
        assert_eq!(daemon.result(&["logs", "-f", id.trim()]), nothing);
        let mut run = daemon.fixture.run(&options);
        run.arg(&look);
        assert_eq!(finish(run).stdout, nothing, "of a run beside the daemon");
    }
}

#[test]
fn a_sandboxed_command_gets_nothing_from_an_app_server() {
    if !has_mount_namespaces() {
        return;
    }
    let fixture = Fixture::new();
    let (place, _) = folders();
    let socket = place.path().join("socket");
    let mut server = fixture.lastbyte(&["app-server", "--listen"]);
    server.arg(format!("unix://{}", socket.display()));
    let mut server = start(server);
    eventually("it listens", || UnixStream::connect(&socket).is_ok());
    let ask = format!(
        "curl -s -o /dev/null -w '%{{http_code}}' --unix-socket {} http://localhost/healthz",
        socket.display()
    );
    let code = |options: &[&str]| {
        let mut command = fixture.run(options);
        command.arg(&ask);
        finish(command).stdout
    };
    assert_eq!(code(&[]), "200");
    assert_eq!(code(&["--sandbox", "read-only", "--network"]), "403");
    send(&server, Signal::TERM);
    server.wait().unwrap();
}

/// A server in a sandbox would be in the same one. It does not come to that: its threads want
/// descriptor tables of their own, by a call that a sandbox refuses.
#[test]
fn a_sandboxed_command_cannot_start_its_own_server() {
    if !has_mount_namespaces() {
        return;
    }
    let fixture = Fixture::new();
    let (work, other) = folders();
    let script = "$LASTBYTE start --state $PWD/s \"$ATTEMPTS\"";
    let mut command = fixture.run(&["--sandbox", "workspace-write", "--network", script]);
    command.current_dir(work.path()).env("OTHER", other.path()).env("ATTEMPTS", ATTEMPTS);
    let finished = finish(command);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(125), ""), "{finished:?}");
    assert!(finished.stderr.contains("Operation not permitted"), "{finished:?}");
    assert!(!other.path().join("in").exists());
}

#[test]
fn an_ending_by_the_sandbox_is_reported() {
    let finished = finish(Fixture::new().run(&["--sandbox", "read-only", "kill -SYS $$"]));
    let told = "lastbyte: the sandbox killed the command\n";
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(159), told));
    let daemon = Daemon::start();
    let id = daemon.result(&["start", "--sandbox", "read-only", "kill -SYS $$"]);
    daemon.finish(&["wait", id.trim()]);
    assert!(daemon.result(&["ps"]).contains("SIGSYS, killed by the sandbox"));
}
