//! `GET …/list`.

use serde_json::json;

use super::client::{As, LIST};
use crate::harness::Server;

const CHAT: &str = "0a1b2c3d-0000-4000-8000-00000000000c";

#[tokio::test]
async fn a_list_has_running_processes_first_and_ten_rows_at_most() {
    let server = Server::start().await;
    let chat = As::chat(CHAT);
    let (_anchor, running) = server.told(json!({ "session": CHAT })).await;
    let mut ids = Vec::new();
    for _ in 0..12 {
        let id = chat.start(&server, "true", json!({})).await;
        chat.ended(&server, &id).await;
        ids.push(id);
    }
    ids.push(running.rsplit('/').next().unwrap().to_owned());
    ids.reverse();
    assert_eq!(chat.listed(&server).await, ids[..10]);
}

#[tokio::test]
async fn the_members_of_a_row_have_a_fixed_order() {
    let server = Server::start().await;
    let nobody = As::nobody();
    assert_eq!(&nobody.get(&server, LIST).await.body[..], b"{\"processes\":[]}\n");
    let more = json!({ "workdir": "/", "background": true });
    let id = nobody.start(&server, "exit 3 # <&>", more).await;
    nobody.ended(&server, &id).await;
    let answer = nobody.get(&server, LIST).await;
    assert_eq!(answer.head("content-type"), Some("application/json; charset=utf-8"));
    let row = answer.json()["processes"][0].clone();
    let (started, exited) = (&row["started_at_unix"], &row["exited_at_unix"]);
    let want = format!(
        "{{\"processes\":[{{\"id\":\"{id}\",\"command\":\"exit 3 # <&>\",\
         \"workdir\":\"/\",\"background\":true,\"running\":false,\"exit_code\":3,\
         \"started_at_unix\":{started},\"exited_at_unix\":{exited}}}]}}\n"
    );
    assert_eq!(String::from_utf8(answer.body.to_vec()).unwrap(), want);
    let shown = server.connect().await.get(&format!("/v1/processes/{id}")).await.json();
    assert_eq!(shown["labels"], json!({ "coder.background": "true" }));
}
