use std::time::Duration;

use std::error::Error;

use lastbyte_client::wire::{self, ErrorCode, OutputQuery};
use lastbyte_client::{Address, Client, ClientError};

use crate::server::{Server, Step, answer};

/// An error and its causes, as an edge prints them.
fn chain(error: &dyn Error) -> String {
    let sources = std::iter::successors(error.source(), |error| (*error).source());
    std::iter::once(error.to_string())
        .chain(sources.map(ToString::to_string))
        .collect::<Vec<_>>()
        .join(": ")
}

#[tokio::test]
async fn a_refusal_is_the_servers_error() {
    let body =
        r#"{"error":{"code":"process_not_found","message":"no process x","hint":"list them"}}"#;
    let server = Server::start(vec![vec![answer(404, "", body)]]);
    let error = server.client().show("x").await.unwrap_err();
    let ClientError::Refused(error) = error else { panic!("{error:?}") };
    let want = wire::Error::new(ErrorCode::ProcessNotFound, "no process x").hint("list them");
    assert_eq!(error, want);
}

#[tokio::test]
async fn a_failed_connection_names_the_address() {
    let error = Client::unix("/proc/nowhere/socket").health().await.unwrap_err();
    let want =
        "cannot connect to unix:/proc/nowhere/socket: No such file or directory (os error 2)";
    assert_eq!(chain(&error), want);
}

#[tokio::test]
async fn an_invalid_answer_is_an_error() {
    async fn check(step: Step, want: &str) {
        let server = Server::start(vec![vec![step]]);
        let client = server.client().patience(Duration::ZERO);
        let error = client.health().await.unwrap_err();
        let chain = chain(&error);
        assert!(chain.starts_with(&format!("GET /healthz failed: {want}")), "{chain}");
    }
    check(answer(200, "", "hello"), "unexpected JSON: hello: expected value").await;
    check(Step::Hang, "the connection broke: ").await;
}

#[tokio::test]
async fn an_answer_of_another_program_names_its_address() {
    async fn check(step: Step, want: &str) {
        let server = Server::start(vec![vec![step]]);
        let client = server.client();
        let Address::Unix(socket) = client.address().clone() else { panic!("no socket file") };
        let error = client.health().await.unwrap_err();
        assert_eq!(chain(&error), format!("{} is not a lastbyte server{want}", socket.display()));
    }
    check(answer(502, "", "<h1>no</h1>"), " (it answered 502 Bad Gateway)").await;
    check(Step::Answer("SSH-2.0\r\n\r\n".into()), "").await;
}

#[tokio::test]
async fn a_raw_answer_without_its_header_fields_is_invalid() {
    let server = Server::start(vec![vec![answer(200, "lastbyte-from: 0\r\n", "abc")]]);
    let error = server.client().raw("x", &OutputQuery::default()).await.unwrap_err();
    let want = "GET /v1/processes/x/output?view=raw failed: the answer has no header lastbyte-next";
    assert_eq!(chain(&error), want);
}
