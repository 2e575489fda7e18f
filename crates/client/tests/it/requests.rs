use lastbyte_client::wire::{
    ForgetQuery, ListQuery, OutputQuery, Phase, Range, ResizeRequest, StartRequest, StopRequest,
    Stream, UpgradeRequest, View, Wait, WriteQuery,
};
use lastbyte_client::{Client, ClientError, RawOutput};

use crate::server::{Server, answer, healthy, over_tcp};

/// The request of one call: the first line of its head, and its body.
async fn asked<T>(call: impl AsyncFnOnce(Client) -> Result<T, ClientError>) -> (String, String) {
    let server = Server::start(vec![vec![answer(200, "", "null")]]);
    // `null` is an invalid answer for most calls, but the answer does not matter here.
    _ = call(server.client()).await;
    let heard = server.heard().remove(0);
    let (head, body) = heard.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("\r\nhost: localhost"), "{head}");
    let line = head.lines().next().unwrap().strip_suffix(" HTTP/1.1").unwrap();
    (line.to_owned(), body.to_owned())
}

#[tokio::test]
async fn every_verb_sends_its_request() {
    let check = |(line, body): (String, String), want_line: &str, want_body: &str| {
        assert_eq!((line.as_str(), body.as_str()), (want_line, want_body));
    };
    let start = StartRequest { shell: Some("make".into()), ..Default::default() };
    check(
        asked(async |c| c.start(&start).await).await,
        "POST /v1/processes",
        r#"{"shell":"make"}"#,
    );
    let list = ListQuery { limit: Some(5), phase: Some(Phase::Running), ..Default::default() };
    check(
        asked(async |c| c.list(&list).await).await,
        "GET /v1/processes?limit=5&phase=running",
        "",
    );
    check(asked(async |c| c.show("a/b").await).await, "GET /v1/processes/a%2Fb", "");
    check(asked(async |c| c.survivors("x").await).await, "GET /v1/processes/x/survivors", "");
    let output = OutputQuery { view: Some(View::Text), ..Default::default() };
    check(
        asked(async |c| c.output("x", &output).await).await,
        "GET /v1/processes/x/output?view=text",
        "",
    );
    let raw = OutputQuery { stream: Some(Stream::Stderr), ..Default::default() };
    check(
        asked(async |c| c.raw("x", &raw).await).await,
        "GET /v1/processes/x/output?stream=stderr&view=raw",
        "",
    );
    let exit = Wait { exit: Some(true), ..Default::default() };
    check(
        asked(async |c| c.wait("x", &exit).await).await,
        "POST /v1/processes/x/wait",
        r#"{"exit":true}"#,
    );
    let write = WriteQuery { offset: Some(3), close: Some(true), keys: Some("C-c,Enter".into()) };
    check(
        asked(async |c| c.write("x", "abc", &write).await).await,
        "POST /v1/processes/x/stdin?close=true&keys=C-c%2CEnter&offset=3",
        "abc",
    );
    let stop = StopRequest::default();
    check(asked(async |c| c.stop("x", &stop).await).await, "POST /v1/processes/x/stop", "{}");
    let size = ResizeRequest { rows: 2, cols: 3 };
    check(
        asked(async |c| c.resize("x", &size).await).await,
        "POST /v1/processes/x/resize",
        r#"{"rows":2,"cols":3}"#,
    );
    let forget = ForgetQuery { stop: Some(true) };
    check(
        asked(async |c| c.forget("x", &forget).await).await,
        "DELETE /v1/processes/x?stop=true",
        "",
    );
    check(asked(async |c| c.shutdown().await).await, "POST /v1/shutdown", "");
    let upgrade = UpgradeRequest { binary: "/b".into() };
    check(
        asked(async |c| c.upgrade(&upgrade).await).await,
        "POST /v1/upgrade",
        r#"{"binary":"/b"}"#,
    );
    check(asked(async |c| c.health().await).await, "GET /healthz", "");
}

#[tokio::test]
async fn a_raw_answer_has_its_bytes_and_the_facts_of_its_head() {
    let head = "lastbyte-from: 1\r\nlastbyte-next: 9\r\nlastbyte-total: 9\r\nlastbyte-dropped: 2-7\r\n\
                lastbyte-phase: draining\r\nlastbyte-log-open: true\r\n";
    let server = Server::start(vec![vec![answer(200, head, "b\0\n")]]);
    let raw = server.client().raw("x", &OutputQuery::default()).await.unwrap();
    let want = RawOutput {
        from: 1,
        next: 9,
        total: 9,
        dropped: vec![Range { start: 2, end: 7 }],
        phase: Phase::Draining,
        log_open: true,
        final_len: None,
        ending: None,
        bytes: "b\0\n".into(),
    };
    assert_eq!(raw, want);
}

#[tokio::test]
async fn a_server_on_a_port_gets_the_token() {
    let (addr, heard) = over_tcp(vec![healthy()]);
    Client::tcp(addr, Some("secret".into())).health().await.unwrap();
    let request = heard.requests().remove(0);
    assert!(request.contains("\r\nauthorization: Bearer secret\r\n"), "{request}");
}
