//! The event after a process of a chat.

use serde_json::{Value, json};

use super::client::As;
use crate::harness::Server;
use crate::http::events::Listener;

const OWN: &str = "0a1b2c3d-0000-4000-8000-00000000000d";
const PARENT: &str = "0a1b2c3d-0000-4000-8000-00000000000e";

#[tokio::test]
async fn after_the_ending_workspace_touched_names_the_chat_and_its_ancestors() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let mut feed = Listener::new(&mut client, &format!("/v1/events?chat={PARENT}")).await;
    let nil = "00000000-0000-0000-0000-000000000000";
    let ancestors = json!([PARENT.to_uppercase(), nil, "no chat"]).to_string();
    let chat = As::chat(OWN).and("Coder-Ancestor-Chat-Ids", &ancestors);
    chat.start(&server, "true", json!({ "workdir": "/tmp/." })).await;
    chat.start(&server, "true", json!({})).await;
    let mut touched = [feed.next().await.data, feed.next().await.data].map(told);
    touched.sort_by_key(Value::to_string);
    let want = |paths: Value| json!({ "chats": [OWN, PARENT], "paths": paths });
    assert_eq!(touched, [want(json!(["/tmp/."])), want(json!([]))]);
}

fn told(mut data: Value) -> Value {
    let event = data["event"].take();
    assert_eq!(event["kind"], "workspace_touched");
    json!({ "chats": event["chats"], "paths": event["paths"] })
}

#[tokio::test]
async fn without_a_chat_there_is_no_workspace_touched() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let mut feed = Listener::new(&mut client, "/v1/events").await;
    let alone = As::nobody().and("Coder-Ancestor-Chat-Ids", &json!([PARENT]).to_string());
    alone.start(&server, "true", json!({ "workdir": "/" })).await;
    assert_eq!(feed.names(2).await, ["started", "ended"]);
    As::chat(OWN).start(&server, "true", json!({})).await;
    assert_eq!(feed.names(3).await, ["started", "ended", "workspace_touched"]);
}
