//! A hook sets the environment of commands, and can neither delay nor fail a start.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lastbyte_engine::Environment;
use lastbyte_server::EnvHook;
use lastbyte_testkit::{Anchor, eventually, script};
use serde_json::json;
use tempfile::TempDir;

use super::harness::Server;

/// A server with this hook, and a folder for the hook.
async fn hooked(command: &str, patience: Duration, own: &[(&str, &str)]) -> (Server, TempDir) {
    let state = tempfile::tempdir().unwrap();
    let hook = EnvHook::new(command, state.path(), patience).unwrap();
    let mut environment = Environment::own();
    own.iter().for_each(|(name, value)| environment.set(name, value));
    let server = Server::tuned(|settings| {
        settings.provider = Some(Arc::new(hook));
        settings.environment = environment;
    });
    (server.await, state)
}

const LONG: Duration = Duration::from_secs(60);

/// What a command prints, and the warnings of its start.
async fn prints(server: &Server, shell: &str) -> (String, Vec<String>) {
    let request = json!({ "shell": shell, "cwd": "/", "wait": { "exit": true } });
    let answer = server.connect().await.post("/v1/processes", &request).await.json();
    let printed = answer["output"]["content"]["head"].as_str().unwrap().to_owned();
    let warnings = answer.get("warnings").cloned().unwrap_or_else(|| json!([]));
    (printed, serde_json::from_value::<Vec<String>>(warnings).unwrap())
}

fn quoted(actions: &str) -> String {
    let words = script(actions).into_iter().map(|word| word.into_string().unwrap());
    words.map(|word| format!("'{word}' ")).collect()
}

#[tokio::test]
async fn the_hooks_output_replaces_the_servers_environment() {
    let hook = "printf '{\"SEEN\":\"%s\"}' \"$OWN\"";
    let (server, _state) = hooked(hook, LONG, &[("OWN", "own")]).await;
    let shown = prints(&server, "echo $SEEN ${OWN-none} ${HOME-none}").await;
    assert_eq!(shown, ("own none none\n".into(), vec![]));
    let (server, _state) = hooked("env -0; printf 'MORE=a\\nb\\0'", LONG, &[("OWN", "own")]).await;
    let shown = prints(&server, "echo \"$OWN $MORE\"").await;
    assert_eq!(shown, ("own a\nb\n".into(), vec![]));
}

#[tokio::test]
async fn the_hook_runs_at_each_start_and_leaves_no_log() {
    let counter = tempfile::NamedTempFile::new().unwrap();
    let file = counter.path().display();
    let hook = format!("echo x >> {file}; printf \"N=$(wc -l < {file})\\0\"");
    let (server, state) = hooked(&hook, LONG, &[]).await;
    for number in 1..=3 {
        assert_eq!(prints(&server, "echo $((N))").await.0, format!("{number}\n"));
    }
    let logs = state.path().join("logs");
    let removed = move || std::fs::read_dir(&logs).unwrap().count() == 0;
    let looked = tokio::task::spawn_blocking(move || eventually("no log is left", removed));
    looked.await.unwrap();
}

#[tokio::test]
async fn a_hook_that_fails_is_a_warning() {
    for (hook, why) in [
        ("echo oops >&2; exit 3", "exit code 3: oops"),
        ("kill -9 $$", "ended by SIGKILL"),
        ("echo nonsense", "which is not NAME=VALUE"),
        ("true", "printed nothing"),
        ("exit 3", "exit code 3"),
    ] {
        let (server, _state) = hooked(hook, LONG, &[("OWN", "own")]).await;
        let (printed, warnings) = prints(&server, "echo $OWN").await;
        assert_eq!(printed, "own\n");
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(warning.starts_with("--env-hook failed: ") && warning.contains(why), "{warning}");
        assert!(warning.ends_with("; the variables it prints are not set"), "{warning}");
    }
}

#[tokio::test]
async fn a_hook_that_hangs_is_killed_after_its_timeout() {
    let anchor = Arc::new(Anchor::listen());
    let (name, value) = anchor.env();
    let own = [(name, value.to_str().unwrap())];
    let hook = quoted("tree 3 mixed then hold");
    let patience = Duration::from_millis(300);
    let (server, _state) = hooked(&hook, patience, &own).await;
    let began = Instant::now();
    let (printed, warnings) = prints(&server, "echo ok").await;
    assert!(began.elapsed() < patience + Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(printed, "ok\n");
    assert!(warnings[0].contains("timed out after 300ms"), "{warnings:?}");
    let gone = tokio::task::spawn_blocking(move || anchor.wait_for_at_most(0));
    assert_eq!(gone.await.unwrap(), Vec::<u32>::new());
}

#[tokio::test]
async fn processes_that_a_hook_leaves_behind_are_killed() {
    let anchor = Arc::new(Anchor::listen());
    let (name, value) = anchor.env();
    let own = [(name, value.to_str().unwrap())];
    let hook = format!("{} & printf 'A=1\\0'", quoted("setsid-background hold end then hold"));
    let (server, _state) = hooked(&hook, LONG, &own).await;
    assert_eq!(prints(&server, "echo $A").await, ("1\n".into(), vec![]));
    let gone = tokio::task::spawn_blocking(move || anchor.wait_for_at_most(0));
    assert_eq!(gone.await.unwrap(), Vec::<u32>::new());
}
