//! `GET …/output/lines`.

use serde_json::{Value, json};

use crate::harness::Server;

async fn ended(server: &Server, shell: &str, quota: u64) -> String {
    let start = json!({ "shell": shell, "quota_bytes": quota, "wait": { "exit": true } });
    let answer = server.connect().await.post("/v1/processes", &start).await.json();
    format!("/v1/processes/{}", answer["process"]["id"].as_str().unwrap())
}

async fn lines(server: &Server, path: &str, query: &str) -> Value {
    let answer = server.connect().await.get(&format!("{path}/output/lines{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// The members of an answer that say where lines are.
fn found(answer: &Value) -> Value {
    json!([answer["first"], answer["offsets"], answer["end"]])
}

#[tokio::test]
async fn a_line_is_found_by_its_number_from_both_ends_and_by_an_offset() {
    let server = Server::start().await;
    let path = ended(&server, "seq 1000000", 64 << 20).await;
    let all = lines(&server, &path, "").await;
    assert_eq!((&all["lines"], &all["counted"]), (&json!(1_000_000), &json!(6_888_896)));
    assert_eq!(found(&all), json!([0, [0], 2]));
    let line = lines(&server, &path, "?line=899999&count=2").await;
    assert_eq!(found(&line), json!([899_999, [6_188_888, 6_188_895], 6_188_902]));
    let last = lines(&server, &path, "?line=-1").await;
    assert_eq!(found(&last), json!([999_999, [6_888_888], 6_888_896]));
    let by_offset = lines(&server, &path, "?offset=6188892").await;
    assert_eq!(found(&by_offset), json!([899_999, [6_188_888], 6_188_895]));
    assert_eq!(found(&lines(&server, &path, "?line=1000000").await), json!([null, [], null]));
}

#[tokio::test]
async fn a_dropped_range_is_one_line_and_named() {
    let server = Server::start().await;
    let path = ended(&server, "seq 1000000", 4 << 20).await;
    let all = lines(&server, &path, "").await;
    let dropped = &all["dropped"][0];
    let (start, end) = (&dropped["start"], &dropped["end"]);
    let gap = lines(&server, &path, &format!("?offset={start}&count=2")).await;
    assert_eq!(gap["offsets"], json!([start, end]));
    assert_eq!(all["counted"], json!(6_888_896));
}

#[tokio::test]
async fn a_log_that_grows_is_counted_on() {
    let server = Server::start().await;
    let (anchor, path) = server.told(json!({})).await;
    for (said, want) in [("a", json!([0, [0], 1])), ("b", json!([0, [0], 2]))] {
        anchor.tell(&format!("print {said}"));
        let len = want[2].as_u64().unwrap();
        let wait = json!({ "output_past": len - 1 });
        server.connect().await.post(&format!("{path}/wait"), &wait).await;
        assert_eq!(found(&lines(&server, &path, "?line=-1").await), want);
    }
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused() {
    let server = Server::start().await;
    let path = ended(&server, "true", 4 << 20).await;
    for query in ["?line=1&offset=1", "?count=0", "?count=10001", "?line=x"] {
        let answer = server.connect().await.get(&format!("{path}/output/lines{query}")).await;
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
    }
}
