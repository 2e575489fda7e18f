//! What each chat can see.

use serde_json::json;

use super::client::{As, output};
use crate::harness::Server;

const A: &str = "0a1b2c3d-0000-4000-8000-00000000000a";
const B: &str = "0a1b2c3d-0000-4000-8000-00000000000b";
const NIL: &str = "00000000-0000-0000-0000-000000000000";

#[tokio::test]
async fn a_chat_reaches_its_own_processes_and_those_without_a_chat() {
    let server = Server::start().await;
    let of_a = As::chat(A).start(&server, "true", json!({})).await;
    let of_nobody = As::nobody().start(&server, "true", json!({})).await;
    let a = [As::chat(A), As::chat(&A.to_uppercase()), As::chat(&format!("{{{A}}}"))];
    let other = [As::chat(B), As::chat(B).and("Coder-Chat-Id", A)];
    let no_one = [As::nobody(), As::chat(NIL), As::chat("not-a-uuid"), As::chat("")];
    for who in &a {
        check(&server, who, &of_a, (200, true)).await;
        check(&server, who, &of_nobody, (200, false)).await;
    }
    for who in &other {
        check(&server, who, &of_a, (404, false)).await;
        check(&server, who, &of_nobody, (200, false)).await;
    }
    for who in &no_one {
        check(&server, who, &of_a, (200, true)).await;
        check(&server, who, &of_nobody, (200, true)).await;
    }
}

async fn check(server: &Server, who: &As, id: &str, (status, listed): (u16, bool)) {
    let seen = who.get(server, &output(id)).await;
    assert_eq!(seen.status, status, "{who:?} {id}");
    // A chat that may signal gets the error about the invalid signal.
    let signalled = who.signal(server, id, "bogus").await.status;
    assert_eq!(signalled, if status == 200 { 400 } else { 404 }, "{who:?} {id}");
    assert_eq!(who.listed(server).await.iter().any(|row| row == id), listed, "{who:?} {id}");
}

#[tokio::test]
async fn processes_of_another_chat_are_not_found() {
    let server = Server::start().await;
    let id = As::chat(A).start(&server, "true", json!({})).await;
    let hidden = As::chat(B).get(&server, &output(&id)).await.json();
    assert_eq!(hidden, json!({ "message": format!("Process \"{id}\" not found.") }));
    let waiting = As::chat(B).get(&server, &format!("{}?wait=true", output(&id))).await;
    assert_eq!(waiting.json(), hidden);
    // The process is looked up before the body is parsed.
    let path = format!("/api/v0/processes/{id}/signal");
    let signalled = As::chat(B).post(&server, &path, "{bad").await;
    assert_eq!((signalled.status, signalled.json()), (404, hidden));
}

#[tokio::test]
async fn a_chat_is_a_session_in_the_native_api() {
    let server = Server::start().await;
    let id = As::chat(&A.to_uppercase()).start(&server, "true", json!({})).await;
    let shown = server.connect().await.get(&format!("/v1/processes/{id}")).await.json();
    assert_eq!(shown["session"], A);
    let more = json!({ "session": A });
    let native = server.start_child("exit 0", more).await["process"]["id"].clone();
    assert!(As::chat(A).listed(&server).await.contains(&native.as_str().unwrap().to_owned()));
}
