//! `POST …/{id}/signal`.

use std::sync::Arc;

use lastbyte_testkit::Anchor;
use serde_json::json;

use super::client::{As, child};
use crate::harness::{Server, env, held};

#[tokio::test]
async fn a_kill_reaches_processes_that_left_the_group() {
    let server = Server::start().await;
    let anchor = Arc::new(Anchor::listen());
    let nobody = As::nobody();
    let command = child("tree 6 mixed then hold");
    let id = nobody.start(&server, &command, json!({ "env": env(&anchor) })).await;
    held(&anchor, 7).await;
    let answer = nobody.signal(&server, &id, "kill").await;
    let message = format!("Signal \"kill\" sent to process \"{id}\".");
    assert_eq!((answer.status, answer.json()), (200, json!({ "message": message })));
    let ended = nobody.ended(&server, &id).await;
    assert_eq!((&ended["running"], &ended["exit_code"]), (&json!(false), &json!(-1)));
    let gone = tokio::task::spawn_blocking(move || anchor.wait_for_at_most(0));
    assert_eq!(gone.await.unwrap(), Vec::<u32>::new());
    let shown = server.connect().await.get(&format!("/v1/processes/{id}")).await.json();
    assert_eq!(shown["ending"]["cause"]["kind"], "stopped");
}

#[tokio::test]
async fn terminate_does_not_escalate_to_kill() {
    let server = Server::start().await;
    let anchor = Arc::new(Anchor::listen());
    let nobody = As::nobody();
    let more = json!({ "env": env(&anchor) });
    let id = nobody.start(&server, &child("ignore 15 then hold"), more).await;
    held(&anchor, 1).await;
    assert_eq!(nobody.signal(&server, &id, "terminate").await.status, 200);
    assert_eq!(nobody.output(&server, &id).await["running"], true);
    anchor.tell("exit 5");
    assert_eq!(nobody.ended(&server, &id).await["exit_code"], 5);
}

#[tokio::test]
async fn an_ended_process_cannot_be_signalled_even_with_survivors() {
    let server = Server::start().await;
    let anchor = Arc::new(Anchor::listen());
    let nobody = As::nobody();
    let command = format!("({}) & exit 0", child("hold"));
    let id = nobody.start(&server, &command, json!({ "env": env(&anchor) })).await;
    nobody.ended(&server, &id).await;
    held(&anchor, 1).await;
    for signal in ["kill", "terminate"] {
        let answer = nobody.signal(&server, &id, signal).await;
        let want = json!({ "message": format!("Process \"{id}\" is not running.") });
        assert_eq!((answer.status, answer.json()), (409, want));
    }
    assert_eq!(nobody.signal(&server, &id, "int").await.status, 400);
    assert_eq!(held(&anchor, 1).await.len(), 1);
}
