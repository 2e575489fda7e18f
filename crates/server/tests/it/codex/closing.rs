//! The end of a connection: its commands are stopped, and answers of ended ones are still
//! delivered.

use lastbyte_engine::{Filter, PhaseKind};
use lastbyte_testkit::eventually;
use serde_json::json;

use super::fixture::{Fixture, patiently, result, run};

#[tokio::test(flavor = "multi_thread")]
async fn running_commands_are_stopped_with_their_trees() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    for n in 0..3 {
        let more = json!({"processId": n.to_string()});
        client.request("command/exec", run("stubborn-tree 6 then hold", more));
    }
    let spawn = json!({"processHandle": "p", "cwd": "/", "timeoutMs": null});
    client.request("process/spawn", run("stubborn-tree 6 then hold", spawn));
    fixture.anchor.wait_for(28);
    client.close();
    client.until_closed().await;
    fixture.anchor.wait_for_at_most(0);
    patiently("the server's end", client.served.take().unwrap()).await.unwrap();
    assert_eq!(client.got.len(), 2, "only what was answered before: {:?}", client.got);
}

#[tokio::test(flavor = "multi_thread")]
async fn survivors_of_ended_commands_are_stopped() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    client.exec(run("leave-silent-holder", json!({}))).await;
    let quiet = "setsid-background close-stdout then close-stderr then hold end then exit 0";
    client.exec(run(quiet, json!({}))).await;
    fixture.anchor.wait_for(2);
    client.close();
    fixture.anchor.wait_for_at_most(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_ended_commands_are_delivered() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    client.read_on(false);
    let mut begun = Vec::new();
    for n in 0..8 {
        let mut params = run("write-bytes 900000 then exit 3", json!({"processId": n.to_string()}));
        params["streamStdoutStderr"] = (n % 2 == 0).into();
        begun.push(client.request("command/exec", params));
    }
    let ended = Filter { phase: Some(PhaseKind::Ended), ..Filter::default() };
    let count = || fixture.engine.list(&ended, None, 100).processes.len();
    eventually("all eight have ended", || count() == 8);
    let running = client.request("command/exec", run("hold", json!({})));
    fixture.anchor.wait_for(1);
    client.close();
    fixture.anchor.wait_for_at_most(0);
    client.read_on(true);
    client.until_closed().await;
    for request in begun {
        assert_eq!(result(&client.answer(request).await).0, 3);
    }
    for n in [0, 2, 4, 6] {
        assert_eq!(client.output(&n.to_string(), "stdout").len(), 900_000);
    }
    assert!(!client.got.iter().any(|message| message["id"] == running));
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_server_ends_every_connection() {
    let fixture = Fixture::new();
    let mut clients = [fixture.client().await, fixture.client().await];
    for client in &mut clients {
        client.request("command/exec", run("hold", json!({})));
    }
    fixture.anchor.wait_for(2);
    patiently("the door closes", fixture.door.close()).await;
    fixture.anchor.wait_for_at_most(0);
    for client in &mut clients {
        patiently("the server's end", client.served.take().unwrap()).await.unwrap();
    }
}
