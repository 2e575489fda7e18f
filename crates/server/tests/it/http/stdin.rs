//! `POST …/stdin`.

use serde_json::json;

use crate::harness::Server;

#[tokio::test]
async fn a_repeated_write_arrives_once() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let started = json!({ "shell": "cat", "stdin": "open" });
    let started = client.post("/v1/processes", &started).await.json();
    let path = crate::harness::path(&started);
    for (query, bytes, accepted) in
        [("offset=0", "abc", 3), ("offset=0", "abc", 3), ("offset=2", "cde", 5), ("", "\u{0}f", 7)]
    {
        let answer = client.send("POST", &format!("{path}/stdin?{query}"), bytes.into()).await;
        assert_eq!(answer.json(), json!({ "accepted": accepted }));
    }
    let gap = client.send("POST", &format!("{path}/stdin?offset=9"), "x".into()).await;
    assert_eq!((gap.status, gap.code().as_str()), (409, "stdin_gap"));
    let closed = client.send("POST", &format!("{path}/stdin?close=true"), "".into()).await;
    assert_eq!(closed.status, 200);
    client.post(&format!("{path}/wait"), &json!({ "exit": true })).await;
    assert_eq!(client.get(&format!("{path}/output")).await.body, "abcde\0f");
    let late = client.send("POST", &format!("{path}/stdin"), "x".into()).await;
    assert_eq!((late.status, late.code().as_str()), (409, "process_exited"));
}

#[tokio::test]
async fn input_is_refused_if_stdin_is_closed_or_the_queue_is_full() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let (_anchor, path) = server.told(json!({})).await;
    let refused = client.send("POST", &format!("{path}/stdin"), "x".into()).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "stdin_not_open"));
    let (_anchor, path) = server.told(json!({ "stdin": "open" })).await;
    let full = vec![b'x'; 16 << 20];
    assert_eq!(client.send("POST", &format!("{path}/stdin"), full.into()).await.status, 200);
    let refused = client.send("POST", &format!("{path}/stdin"), vec![b'x'; 1 << 20].into()).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "stdin_full"));
    let stop = json!({ "stop": { "grace_ms": 0 } });
    let proof = client.post(&format!("{path}/stop"), &stop).await.json();
    assert_eq!(proof["left"], json!([]));
}
