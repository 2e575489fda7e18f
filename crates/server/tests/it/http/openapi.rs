//! `GET /openapi.json`: what the document says is there is there.

use serde_json::Value;

use crate::harness::{Answer, Server};

#[tokio::test]
async fn every_route_of_the_document_is_one_of_the_server() {
    let server = Server::start().await;
    let document = server.connect().await.get("/openapi.json").await;
    assert_eq!(document.head("content-type"), Some("application/json"));
    let document = document.json();
    let mut count = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            check(&server, &method.to_uppercase(), &path.replace("{id}", "none")).await;
            count += 1;
        }
    }
    assert!(count > 15, "{count}");
}

/// Asks, and takes any answer but that there is no such route.
async fn check(server: &Server, method: &str, path: &str) {
    let answer = server.connect().await.begin(method, path, "".into()).await;
    // Answers that are none of ours may have no end.
    if answer.status().is_client_error() {
        let refused = Answer::whole(answer).await;
        let code = refused.json()["error"]["code"].clone();
        let no_route = ["route_not_found", "method_not_allowed"].map(Value::from);
        assert!(!no_route.contains(&code), "{method} {path}: {code}");
    }
}
