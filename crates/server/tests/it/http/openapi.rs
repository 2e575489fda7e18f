//! `GET /openapi.json` describes exactly the routes of the server.

use std::collections::BTreeSet;

use lastbyte_server::doors::http;
use serde_json::Value;

use crate::harness::{Answer, Server};

#[test]
fn the_document_has_exactly_the_routes_of_the_server() {
    let document: Value = serde_json::from_str(lastbyte_wire::OPENAPI).unwrap();
    let described: BTreeSet<_> = described(&document).collect();
    let offered: BTreeSet<_> =
        http::offered().map(|(method, path)| (method.to_owned(), path.to_owned())).collect();
    let missing: Vec<_> = offered.difference(&described).collect();
    let made_up: Vec<_> = described.difference(&offered).collect();
    assert!(missing.is_empty(), "not in the document: {missing:?}");
    assert!(made_up.is_empty(), "not in the server: {made_up:?}");
}

#[test]
fn the_page_about_the_api_begins_with_a_table_of_the_documents_routes() {
    let document: Value = serde_json::from_str(lastbyte_wire::OPENAPI).unwrap();
    let described: BTreeSet<String> = described(&document)
        .map(|(method, path)| {
            let operation = &document["paths"][&path][method.to_lowercase()];
            format!("| {method} | `{path}` | {} |", operation["summary"].as_str().unwrap())
        })
        .collect();
    let page = include_str!("../../../../../docs/api.md");
    let (_, table) = page.split_once("| method | path | what it does |\n|---|---|---|\n").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let rows: BTreeSet<String> = table.lines().map(str::to_owned).collect();
    let missing: Vec<_> = described.difference(&rows).collect();
    let outdated: Vec<_> = rows.difference(&described).collect();
    assert!(missing.is_empty() && outdated.is_empty(), "add {missing:#?}, remove {outdated:#?}");
}

/// Method and path of every operation.
fn described(document: &Value) -> impl Iterator<Item = (String, String)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().keys();
        methods.map(|method| (method.to_uppercase(), path.clone()))
    })
}

#[tokio::test]
async fn the_server_has_every_route_of_the_document() {
    let server = Server::start().await;
    let document = server.connect().await.get("/openapi.json").await;
    assert_eq!(document.head("content-type"), Some("application/json"));
    let document = document.json();
    let mut count = 0;
    for (method, path) in described(&document) {
        check(&server, &method, &path.replace("{id}", "none")).await;
        count += 1;
    }
    assert!(count > 15, "{count}");
}

/// Fails if the server has no such route; any other answer is fine.
async fn check(server: &Server, method: &str, path: &str) {
    let answer = server.connect().await.begin(method, path, "".into()).await;
    // An answer of another kind may never end.
    if answer.status().is_client_error() {
        let refused = Answer::whole(answer).await;
        let code = refused.json()["error"]["code"].clone();
        let no_route = ["route_not_found", "method_not_allowed"].map(Value::from);
        assert!(!no_route.contains(&code), "{method} {path}: {code}");
    }
}
