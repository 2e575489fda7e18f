//! An engine with the Codex API, and an anchor for the helpers that are started through it.

use lastbyte_engine::{Engine, Environment, Settings};
use lastbyte_server::doors::codex::{self, Door, LocalExecution};
use lastbyte_testkit::{Anchor, PATIENCE, script};
use serde_json::{Value, json};

use super::client::Client;

/// Ends its helpers and removes its files when dropped.
pub struct Fixture {
    pub engine: Engine,
    pub door: Door,
    pub anchor: Anchor,
    pub folder: tempfile::TempDir,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut codex::Settings)) -> Self {
        let (folder, anchor) = (tempfile::tempdir().unwrap(), Anchor::listen());
        let mut settings = Settings::new(folder.path().join("state"));
        let (name, value) = anchor.env();
        settings.environment = Environment::own();
        settings.environment.set(name, value);
        let mut door = codex::Settings::new(folder.path(), folder.path());
        door.environment = settings.environment.clone();
        door.local_execution = LocalExecution::Enabled;
        change(&mut door);
        let engine = Engine::new(settings).unwrap();
        Self { door: Door::new(engine.clone(), door), engine, anchor, folder }
    }

    /// A client after the handshake.
    pub async fn client(&self) -> Client {
        self.client_with(json!({"experimentalApi": true})).await
    }

    pub async fn client_with(&self, capabilities: Value) -> Client {
        let mut client = Client::over_lines(&self.door);
        client.initialize(capabilities).await;
        client
    }
}

/// The argv of a `testchild` with these actions.
pub fn child(actions: &str) -> Value {
    let words = script(actions).into_iter().map(|word| word.into_string().unwrap());
    words.collect::<Vec<_>>().into()
}

/// Parameters with a `command`: a `testchild` with these actions, without a timeout unless
/// `more` sets one.
pub fn run(actions: &str, more: Value) -> Value {
    let more = more.as_object().unwrap();
    let mut params = json!({"command": child(actions)});
    if !more.contains_key("timeoutMs") {
        params["disableTimeout"] = true.into();
    }
    params.as_object_mut().unwrap().extend(more.clone());
    params
}

/// Fails the test if it takes unreasonably long.
pub async fn patiently<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain: {what}"),
    }
}

/// The error of an answer.
#[track_caller]
pub fn fault(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    assert!(error.is_object(), "{answer}");
    (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap())
}

/// Exit code, stdout and stderr of an answer.
#[track_caller]
pub fn result(answer: &Value) -> (i64, &str, &str) {
    let result = &answer["result"];
    assert!(result.is_object(), "{answer}");
    let text = |name| result[name].as_str().unwrap();
    (result["exitCode"].as_i64().unwrap(), text("stdout"), text("stderr"))
}
