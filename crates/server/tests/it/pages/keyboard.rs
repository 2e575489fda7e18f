//! One client has the keyboard, and the others watch.

use serde_json::{Value, json};

use super::fixture::{Attached, Pages};

async fn attached(server: &Pages, id: &str) -> Attached {
    let ticket = server.ticket(&server.own()).await;
    let mut socket = server.attach(id, &ticket).await.unwrap();
    assert_eq!(socket.words().await["kind"], "attached");
    socket
}

#[tokio::test]
async fn while_one_client_has_the_keyboard_nobody_else_writes() {
    let server = Pages::start().await;
    let (id, own) = (server.cat("a").await, server.own());
    let (mut driver, mut watcher) = (attached(&server, &id).await, attached(&server, &id).await);
    watcher.type_text("before ").await;
    driver.until_output("before ").await;
    driver.say(json!({ "kind": "take_keyboard", "name": "Anna" })).await;
    let told = driver.words().await;
    assert_eq!((&told["yours"], &told["keyboard"]["secret"]), (&json!(true), &json!(false)));
    let told = watcher.words().await;
    assert_eq!((&told["yours"], &told["keyboard"]["holder"]), (&json!(false), &json!("Anna")));
    watcher.type_text("not this").await;
    let refused = watcher.words().await["error"].clone();
    assert_eq!(refused["code"], "keyboard_taken");
    assert!(refused["message"].as_str().unwrap().contains("Anna"), "{refused}");
    watcher.say(json!({ "kind": "take_keyboard" })).await;
    assert_eq!(watcher.words().await["error"]["code"], "keyboard_taken");
    watcher.say(json!({ "kind": "close_stdin" })).await;
    assert_eq!(watcher.words().await["error"]["code"], "keyboard_taken");
    let stdin = format!("/v1/processes/{id}/stdin");
    let agent = server.send(&own, "POST", &stdin, json!("nor this")).await;
    assert_eq!((agent.status, agent.code().as_str()), (409, "keyboard_taken"));
    let known = server.send(&own, "POST", &format!("{stdin}?offset=0"), Value::Null).await;
    assert_eq!(known.status, 200, "how much was accepted is no secret");
    driver.type_text("this").await;
    driver.until_output("this").await;
    drop(driver);
    assert_eq!(watcher.words().await, json!({ "kind": "keyboard", "yours": false }));
    watcher.type_text(" after").await;
    watcher.until_output(" after").await;
    assert_eq!(server.output(&id).await, "before this after");
}

#[tokio::test]
async fn a_keyboard_that_nobody_has_cannot_be_given_back_and_a_pipe_needs_no_terminal() {
    let server = Pages::start().await;
    let id = server.cat("a").await;
    let mut client = attached(&server, &id).await;
    client.say(json!({ "kind": "give_back_keyboard" })).await;
    assert_eq!(client.words().await["error"]["code"], "keyboard_not_yours");
    client.say(json!({ "kind": "take_keyboard", "name": "x".repeat(65) })).await;
    assert_eq!(client.words().await["error"]["code"], "invalid_request");
    client.say(json!({ "kind": "take_keyboard" })).await;
    client.words().await;
    client.say(json!({ "kind": "secret_input", "on": true })).await;
    assert_eq!(client.words().await["keyboard"]["secret"], true);
    // The program shows it itself, which nobody can prevent.
    client.type_text("secret").await;
    client.until_output("secret").await;
    let closed = server.run(json!({ "shell": "sleep 600" })).await;
    let mut client = attached(&server, &closed).await;
    client.say(json!({ "kind": "take_keyboard" })).await;
    assert_eq!(client.words().await["error"]["code"], "stdin_not_open");
}
