//! Several processes in one request, and what stands for an id.

use serde_json::{Value, json};

use crate::harness::Server;

async fn id_of(server: &Server, actions: &str, more: Value) -> String {
    id(&server.start_child(actions, more).await)
}

fn id(started: &Value) -> String {
    started["process"]["id"].as_str().unwrap().to_owned()
}

async fn ended(server: &Server, actions: &str) -> String {
    id_of(server, actions, json!({ "wait": { "exit": true } })).await
}

/// Whether each process has this member, by its id.
fn each<'a>(answer: &'a Value, member: &str) -> Vec<(&'a str, bool)> {
    let processes = answer["processes"].as_array().unwrap().iter();
    processes.map(|one| (one["id"].as_str().unwrap(), one.get(member).is_some())).collect()
}

#[tokio::test]
async fn several_are_stopped_by_one_request_with_a_proof_or_an_error_each() {
    let server = Server::start().await;
    let first = id_of(&server, "sleep-ms 600000", json!({ "name": "first" })).await;
    let second = id_of(&server, "sleep-ms 600000", json!({})).await;
    let mut client = server.connect().await;
    let ids = json!({ "select": { "ids": [second, "nobody", "first", first] } });
    let answer = client.post("/v1/stop", &ids).await.json();
    let want = [(second.as_str(), true), ("nobody", false), (&first, true)];
    assert_eq!(each(&answer, "proof"), want, "each once, in their order");
    assert_eq!(answer["processes"][1]["error"]["code"], "process_not_found");
    assert_eq!(answer["processes"][2]["name"], "first");
    assert_eq!(answer["processes"][2]["proof"]["left"], json!([]));
    // A stop is answered when the process has ended, so its name is free.
    let again = json!({ "command": ["true"], "name": "first" });
    assert_eq!(client.post("/v1/processes", &again).await.status, 201);
}

#[tokio::test]
async fn a_stop_by_a_condition_leaves_out_what_has_ended_for_good() {
    let server = Server::start().await;
    ended(&server, "exit 0").await;
    let survived = ended(&server, "leave-silent-holder").await;
    let running = id_of(&server, "sleep-ms 600000", json!({})).await;
    let mut client = server.connect().await;
    let listed = client.get("/v1/processes?survivors=true").await.json();
    assert_eq!(listed["survived"], json!([survived]));
    let all = json!({ "select": { "all": true } });
    let answer = client.post("/v1/stop", &all).await.json();
    let want = [(running.as_str(), false), (survived.as_str(), true)];
    assert_eq!(each(&answer, "ended_before"), want, "newest first");
    let again = client.post("/v1/stop", &all).await.json();
    assert_eq!(again["processes"], json!([]));
}

#[tokio::test]
async fn a_selection_without_a_member_is_refused_and_no_ids_are_nobody() {
    let server = Server::start().await;
    let running = server.path_of("sleep-ms 600000", json!({})).await;
    let mut client = server.connect().await;
    for nothing in [json!({}), json!({ "all": false }), json!({ "session": null })] {
        let refused = client.post("/v1/stop", &json!({ "select": nothing })).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_request"));
    }
    let answer = client.post("/v1/stop", &json!({ "select": { "ids": [] } })).await.json();
    assert_eq!(answer["processes"], json!([]));
    let bad = json!({ "select": { "ids": [] }, "stop": { "signal": "NONE" } });
    assert_eq!(client.post("/v1/stop", &bad).await.code(), "invalid_request");
    assert_eq!(client.get(&running).await.json()["phase"], "running");
}

#[tokio::test]
async fn a_wait_for_all_says_what_each_has_met() {
    let server = Server::start().await;
    let failed = id_of(&server, "exit 3", json!({ "session": "s" })).await;
    let ready = id_of(&server, r"print up\n then sleep-ms 600000", json!({ "session": "s" })).await;
    let mut client = server.connect().await;
    let request =
        json!({ "select": { "session": "s" }, "wait": { "exit": true, "pattern": "up" } });
    let answer = client.post("/v1/wait", &request).await.json();
    let met: Vec<_> = answer["processes"].as_array().unwrap().iter().collect();
    assert_eq!(
        (&met[0]["process"]["id"], &met[0]["wait"]["met"]),
        (&json!(ready), &json!("pattern"))
    );
    assert_eq!(
        (&met[1]["process"]["id"], &met[1]["wait"]["met"]),
        (&json!(failed), &json!("exit"))
    );
    assert_eq!(met[1]["process"]["ending"]["status"]["code"], 3);
    let request =
        json!({ "select": { "ids": [failed, ready] }, "wait": { "exit": true, "timeout_ms": 0 } });
    let answer = client.post("/v1/wait", &request).await.json();
    let met = |nth: usize| answer["processes"][nth]["wait"]["met"].as_str().unwrap().to_owned();
    assert_eq!((met(0), met(1)), ("exit".into(), "timeout".into()));
}

#[tokio::test]
async fn a_wait_for_any_is_over_when_one_has_met_something() {
    let server = Server::start().await;
    let running = id_of(&server, "sleep-ms 600000", json!({})).await;
    let ended = id_of(&server, "exit 0", json!({})).await;
    let mut client = server.connect().await;
    let request =
        json!({ "select": { "ids": [running, ended] }, "wait": { "exit": true }, "any": true });
    let answer = client.post("/v1/wait", &request).await.json();
    assert_eq!(answer["processes"][0].get("wait"), None);
    assert_eq!(answer["processes"][0]["process"]["phase"], "running");
    assert_eq!(answer["processes"][1]["wait"], json!({ "met": "exit" }));
    let typo = json!({ "select": { "ids": [running, "nobody"] }, "wait": { "exit": true } });
    let refused = client.post("/v1/wait", &typo).await;
    assert_eq!((refused.status, refused.code().as_str()), (404, "process_not_found"));
}

#[tokio::test]
async fn what_failed_is_selected_and_what_cannot_be_forgotten_is_told() {
    let server = Server::start().await;
    let succeeded = ended(&server, "exit 0").await;
    let failed = ended(&server, "exit 1").await;
    let running = id_of(&server, "sleep-ms 600000", json!({})).await;
    let mut client = server.connect().await;
    let listed = client.get("/v1/processes?failed=true").await.json();
    assert_eq!(each(&listed, "ending"), [(failed.as_str(), true)]);
    let request = json!({ "select": { "failed": true, "ids": [failed, succeeded, running] } });
    let answer = client.post("/v1/forget", &request).await.json();
    assert_eq!(each(&answer, "error"), [(failed.as_str(), false)]);
    let answer = client.post("/v1/forget", &json!({ "select": { "all": true } })).await.json();
    assert_eq!(each(&answer, "error"), [(running.as_str(), true), (&succeeded, false)]);
    assert_eq!(answer["processes"][0]["error"]["code"], "not_ended");
    let stop = json!({ "select": { "all": true }, "stop": true });
    let answer = client.post("/v1/forget", &stop).await.json();
    assert_eq!(each(&answer, "error"), [(running.as_str(), false)]);
}

#[tokio::test]
async fn a_signal_to_several_says_whom_it_reached() {
    let server = Server::start().await;
    let running = id_of(&server, "sleep-ms 600000", json!({})).await;
    let gone = ended(&server, "exit 0").await;
    let mut client = server.connect().await;
    let request = json!({ "select": { "ids": [running, gone] }, "signal": "TERM" });
    let answer = client.post("/v1/signal", &request).await.json();
    let to = |nth: usize| answer["processes"][nth]["delivered"]["to"].clone();
    assert_eq!((to(0), to(1)), (json!("group"), json!("nobody")));
    let refused = json!({ "select": { "all": true }, "signal": "NONE" });
    assert_eq!(client.post("/v1/signal", &refused).await.code(), "invalid_request");
}

#[tokio::test]
async fn a_name_a_part_of_an_id_and_last_stand_for_the_id() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let none = client.get("/v1/processes/last").await;
    assert_eq!((none.status, none.code().as_str()), (404, "process_not_found"));
    let first = id_of(&server, "exit 0", json!({ "name": "web.1" })).await;
    let second = id_of(&server, "exit 0", json!({})).await;
    for (given, want) in [("web.1", &first), (&first[24..], &first), ("last", &second)] {
        let found = client.get(&format!("/v1/processes/{given}")).await.json();
        assert_eq!(found["id"], *want, "{given}");
    }
    for (given, status, code) in [
        (&first[..4], 409, "ambiguous_id"),
        (&first[33..], 404, "process_not_found"),
        ("web", 404, "process_not_found"),
    ] {
        let refused = client.get(&format!("/v1/processes/{given}")).await;
        assert_eq!((refused.status, refused.code().as_str()), (status, code), "{given}");
    }
}

#[tokio::test]
async fn a_name_that_is_taken_or_could_be_an_id_is_refused() {
    let server = Server::start().await;
    let holder = server.start_child("sleep-ms 600000", json!({ "name": "web" })).await;
    assert_eq!(holder["process"]["name"], "web");
    let mut client = server.connect().await;
    let taken = client.post("/v1/processes", &json!({ "shell": "true", "name": "web" })).await;
    assert_eq!((taken.status, taken.code().as_str()), (409, "name_taken"));
    let message = taken.json()["error"]["message"].to_string();
    assert!(message.contains(&id(&holder)), "{message}");
    let long = "a".repeat(65);
    for name in ["", "last", "1a", "-a", "a b", "a/b", "ä", &long] {
        let request = json!({ "shell": "true", "name": name });
        let refused = client.post("/v1/processes", &request).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_request"), "{name:?}");
    }
    let longest = json!({ "shell": "true", "name": "a".repeat(64) });
    assert_eq!(client.post("/v1/processes", &longest).await.status, 201);
}
