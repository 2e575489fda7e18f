//! Paths and methods, over a plain socket, so that no client library normalizes them.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::client::As;
use crate::harness::Server;

/// Head and body of the answer, unchanged.
async fn ask(server: &Server, method: &str, below: &str) -> (String, String) {
    let address = server.address;
    let request = format!(
        "{method} /api/v0/processes{below} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    );
    let asked = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    let answer = asked.await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_are_unescaped_and_quoted_as_in_go() {
    let server = Server::start().await;
    let shown = [
        ("", ""),
        ("list", "list"),
        ("..", ".."),
        ("a%20b", "a b"),
        ("%22", "\\\\\\\""),
        ("%C3%A9", "\u{e9}"),
        ("%FF", "\\\\xff"),
        ("%25", "%"),
        ("a%2Fb", "a%2Fb"),
        ("%2e%2e", "%2e%2e"),
        ("%3Cb%3E%26", "%3Cb%3E%26"),
        ("%3Cb%3E", "<b>"),
        ("%00%7F%0A", "\\\\x00\\\\x7f\\\\n"),
        ("%E2%80%A8", "\\\\u2028"),
    ];
    for (segment, quoted) in shown {
        let (head, body) = ask(&server, "GET", &format!("/{segment}/output")).await;
        assert!(head.starts_with("http/1.1 404"), "{segment}: {head}");
        assert_eq!(body, format!("{{\"message\":\"Process \\\"{quoted}\\\" not found.\"}}\n"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_in_another_spelling_is_not_found() {
    let server = Server::start().await;
    let id = As::nobody().start(&server, "true", serde_json::json!({})).await;
    for spelling in [id.to_uppercase(), id.replace('-', ""), format!("{{{id}}}")] {
        let (head, _) = ask(&server, "GET", &format!("/{spelling}/output")).await;
        assert!(head.starts_with("http/1.1 404"), "{spelling}");
    }
    let (head, _) = ask(&server, "GET", &format!("/{id}/output")).await;
    assert!(head.starts_with("http/1.1 200"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_path_is_answered_in_plain_text() {
    let server = Server::start().await;
    for below in ["", "/", "/list/", "/LIST", "/abc", "/abc/output/", "//list", "/tokens/"] {
        let (head, body) = ask(&server, "GET", below).await;
        assert!(head.starts_with("http/1.1 404"), "{below}: {head}");
        assert!(head.contains("content-type: text/plain; charset=utf-8"), "{head}");
        assert!(head.contains("x-content-type-options: nosniff"), "{head}");
        assert_eq!(body, "404 page not found\n", "{below}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_error_for_a_wrong_method_names_the_right_one() {
    let server = Server::start().await;
    for (method, below, allow) in [
        ("GET", "/start", Some("post")),
        ("HEAD", "/list", Some("get")),
        ("OPTIONS", "/abc/output", Some("get")),
        ("DELETE", "/abc/signal", Some("post")),
        ("POST", "/tokens/abc", Some("get")),
        ("FOO", "/list", None),
        ("FOO", "/nowhere", None),
    ] {
        let (head, body) = ask(&server, method, below).await;
        assert!(head.starts_with("http/1.1 405"), "{method} {below}: {head}");
        let named = head.lines().find_map(|line| line.strip_prefix("allow: "));
        assert_eq!((named, body.as_str()), (allow, ""), "{method} {below}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_escape_is_a_bad_request() {
    let server = Server::start().await;
    let (head, body) = ask(&server, "GET", "/%zz/output").await;
    assert!(head.starts_with("http/1.1 400"), "{head}");
    assert!(head.contains("connection: close"), "{head}");
    assert_eq!(body, "400 Bad Request");
}
