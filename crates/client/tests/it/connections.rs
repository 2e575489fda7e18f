use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use lastbyte_client::wire::{SignalRequest, StartRequest, WriteQuery};
use lastbyte_client::{ClientError, Problem};

use crate::server::{Server, Step, answer, healthy};

fn int() -> SignalRequest {
    SignalRequest { signal: "INT".into() }
}

fn delivered() -> Step {
    answer(200, "", r#"{"delivered":{"to":"nobody"}}"#)
}

#[tokio::test]
async fn successive_requests_share_a_connection() {
    let server = Server::start(vec![vec![healthy(), healthy(), healthy()]]);
    let client = server.client();
    for _ in 0..3 {
        client.health().await.unwrap();
    }
    server.until_heard("closed");
    assert_eq!(server.heard().len(), 4);
}

#[tokio::test]
async fn simultaneous_requests_have_a_connection_each() {
    let server = Server::start(vec![vec![healthy()], vec![healthy()]]);
    let client = server.client();
    let (one, other) = tokio::join!(client.health(), client.health());
    assert_eq!((one.unwrap().pid, other.unwrap().pid), (7, 7));
}

#[tokio::test]
async fn a_closed_idle_connection_is_replaced_for_every_request() {
    let (open, gone) = channel();
    let close = Step::CloseAfter(Arc::new(Mutex::new(gone)));
    let server = Server::start(vec![vec![healthy(), close], vec![delivered()]]);
    let client = server.client();
    client.health().await.unwrap();
    drop(open);
    server.until_heard("closed");
    client.signal("x", &int()).await.unwrap();
}

#[tokio::test]
async fn a_request_that_may_have_been_carried_out_is_not_repeated() {
    let server = Server::start(vec![vec![healthy(), Step::Hang], vec![delivered()]]);
    let client = server.client();
    client.health().await.unwrap();
    let error = client.signal("x", &int()).await.unwrap_err();
    let ClientError::Protocol { asked, source: Problem::Http(_) } = error else {
        panic!("{error:?}")
    };
    assert_eq!(asked, "POST /v1/processes/x/signal");
    let heard = server.heard();
    assert_eq!(heard.iter().filter(|heard| heard.contains("/signal")).count(), 1, "{heard:?}");
}

#[tokio::test]
async fn a_safe_request_is_repeated_when_a_kept_connection_breaks() {
    let server = Server::start(vec![vec![healthy(), Step::Hang], vec![healthy()]]);
    let client = server.client();
    client.health().await.unwrap();
    client.health().await.unwrap();
}

#[tokio::test]
async fn a_start_is_repeated_only_with_a_key_and_a_write_only_with_an_offset() {
    let refused = || answer(404, "", r#"{"error":{"code":"route_not_found","message":"no"}}"#);
    let script = || vec![vec![healthy(), Step::Hang], vec![refused()]];
    let start =
        |key: Option<&str>| StartRequest { key: key.map(str::to_owned), ..Default::default() };
    for (key, again) in [(None, false), (Some("k"), true)] {
        let server = Server::start(script());
        let client = server.client();
        client.health().await.unwrap();
        let error = client.start(&start(key)).await.unwrap_err();
        assert_eq!(matches!(error, ClientError::Refused(_)), again, "{error:?}");
    }
    for (offset, again) in [(None, false), (Some(0), true)] {
        let server = Server::start(script());
        let client = server.client();
        client.health().await.unwrap();
        let query = WriteQuery { offset, close: None, keys: None };
        let error = client.write("x", "text", &query).await.unwrap_err();
        assert_eq!(matches!(error, ClientError::Refused(_)), again, "{error:?}");
    }
}
