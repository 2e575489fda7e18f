//! A client of Coder's agent.

use lastbyte_testkit::script;
use serde_json::{Value, json};

use crate::harness::{Answer, Client, Server};

pub(super) const START: &str = "/api/v0/processes/start";
pub(super) const LIST: &str = "/api/v0/processes/list";

/// A client that names its chat.
#[derive(Debug, Clone, Default)]
pub(super) struct As {
    headers: Vec<(String, String)>,
}

impl As {
    pub(super) fn nobody() -> Self {
        Self::default()
    }

    pub(super) fn chat(chat: &str) -> Self {
        Self::nobody().and("Coder-Chat-Id", chat)
    }

    pub(super) fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(super) async fn send(&self, client: &mut Client, request: (&str, &str, &str)) -> Answer {
        let (method, path, body) = request;
        let headers = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers: Vec<_> = headers.collect();
        let body = body.to_owned().into();
        Answer::whole(client.begin_with(method, path, &headers, body).await).await
    }

    pub(super) async fn get(&self, server: &Server, path: &str) -> Answer {
        self.send(&mut server.connect().await, ("GET", path, "")).await
    }

    pub(super) async fn post(&self, server: &Server, path: &str, body: &str) -> Answer {
        self.send(&mut server.connect().await, ("POST", path, body)).await
    }

    /// Starts a shell command, which must succeed; returns its id.
    pub(super) async fn start(&self, server: &Server, command: &str, more: Value) -> String {
        let mut request = json!({ "command": command });
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = self.post(server, START, &request.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    pub(super) async fn output(&self, server: &Server, id: &str) -> Value {
        self.get(server, &output(id)).await.json()
    }

    /// The output when the process has ended.
    pub(super) async fn ended(&self, server: &Server, id: &str) -> Value {
        self.get(server, &format!("{}?wait=true", output(id))).await.json()
    }

    pub(super) async fn signal(&self, server: &Server, id: &str, signal: &str) -> Answer {
        let path = format!("/api/v0/processes/{id}/signal");
        self.post(server, &path, &json!({ "signal": signal }).to_string()).await
    }

    /// The ids that are listed.
    pub(super) async fn listed(&self, server: &Server) -> Vec<String> {
        let listed = self.get(server, LIST).await.json();
        let ids = listed["processes"].as_array().unwrap().iter();
        ids.map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    }
}

pub(super) fn output(id: &str) -> String {
    format!("/api/v0/processes/{id}/output")
}

/// A `testchild` with this script, as a shell command.
pub(super) fn child(actions: &str) -> String {
    let words = script(actions).into_iter().map(|word| word.into_string().unwrap());
    let quoted: Vec<_> = words.map(|word| format!("'{word}'")).collect();
    format!("exec {}", quoted.join(" "))
}
