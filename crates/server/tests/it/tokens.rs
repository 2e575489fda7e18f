//! What each token may do, at every route of every door that takes tokens.
//!
//! The table is written by hand and compared with the routes of the server, so that a new route has
//! to be entered here.

use std::collections::BTreeSet;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lastbyte_engine::{Engine, Settings};
use lastbyte_server::doors::{coder, codex, http, mcp};
use lastbyte_server::listen::{
    AcceptedTokens, Access, CreatedTokens, Hosts, Listener, PageTimes, Pages, Server, Token,
};
use lastbyte_server::{App, Limits, router};
use lastbyte_testkit::PATIENCE;
use lastbyte_wire::TokenScope;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::{Answer, Client, argv};

/// A server on a port, with tokens of every kind and a process in each session.
struct Tokens {
    address: SocketAddr,
    created: Arc<CreatedTokens>,
    own: String,
    /// The id of a process in the session `a`, and of another.
    process: String,
    other: String,
    _state: TempDir,
}

/// Whose token a request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    All,
    /// Of the session that the process is in.
    Own,
    /// Of another session.
    Other,
    ReadOnly,
    Expired,
    Nobody,
    /// Of a page that sees everything.
    Page,
    /// Of a page that is bound to the process.
    OfProcess,
    /// Of a page that is bound to another one.
    OfOther,
    /// Of a page that may only read the process.
    OfReader,
}

const EVERYBODY: [Who; 10] = [
    Who::All,
    Who::Own,
    Who::Other,
    Who::ReadOnly,
    Who::Expired,
    Who::Nobody,
    Who::Page,
    Who::OfProcess,
    Who::OfOther,
    Who::OfReader,
];

impl Tokens {
    async fn start() -> Self {
        let state = tempfile::tempdir().unwrap();
        let engine = Engine::new(Settings::new(state.path())).unwrap();
        let created = Arc::new(CreatedTokens::open(state.path()).unwrap());
        let token = Token::read_or_create(state.path()).unwrap();
        let own = std::fs::read_to_string(Token::file_in(state.path())).unwrap().trim().to_owned();
        let accepted = AcceptedTokens::new(token).and(Arc::clone(&created));
        let access = Access::Token(Arc::new(accepted));
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap(), access).unwrap();
        let address = listener.to_string().strip_prefix("http://").unwrap().parse().unwrap();
        let limits = Limits::default();
        let settings = codex::Settings::new("/", state.path());
        let codex = codex::route(codex::Door::new(engine.clone(), settings));
        let pages = Pages::open(state.path(), false, PageTimes::default(), Arc::clone(&created));
        let pages = Arc::new(pages.unwrap());
        let app = App::new(engine, limits).with_tokens(Arc::clone(&created));
        let app = app.with_pages(Arc::clone(&pages));
        let server = Server::new(vec![listener], Hosts::default(), limits).with_pages(pages);
        tokio::spawn(server.run(router(app).merge(codex), pending(), pending()));
        let (process, other) = (String::new(), String::new());
        let mut own_server = Self { address, created, own, process, other, _state: state };
        own_server.process = own_server.child(Who::All, json!({ "session": "a" })).await;
        own_server.other = own_server.child(Who::All, json!({ "session": "a" })).await;
        own_server
    }

    /// A new token of this kind, as a header field.
    async fn field(&self, who: Who) -> Option<String> {
        let session = |name: &str| TokenScope::Session { name: name.into() };
        let (scope, expires) = match who {
            Who::All => return Some(format!("Bearer {}", self.own)),
            Who::Nobody => return None,
            Who::Own => (session("a"), None),
            Who::Other => (session("b"), None),
            Who::ReadOnly => (TokenScope::ReadOnly, None),
            Who::Expired => (TokenScope::All, Some(Duration::ZERO)),
            Who::Page => return Some(self.page(Who::All, json!({})).await),
            Who::OfProcess => {
                return Some(self.page(Who::Own, json!({ "process": self.process })).await);
            }
            Who::OfOther => {
                return Some(self.page(Who::All, json!({ "process": self.other })).await);
            }
            Who::OfReader => {
                return Some(self.page(Who::ReadOnly, json!({ "process": self.process })).await);
            }
        };
        let token = self.created.create(scope, expires, None).unwrap().token;
        Some(format!("Bearer {token}"))
    }

    /// The token that a page gets for a link of this client, as a header field.
    async fn page(&self, who: Who, link: Value) -> String {
        let made = Box::pin(self.send(who, ("POST", "/v1/links", link), &[])).await;
        assert_eq!(made.status, 201, "{made:?}");
        let url = made.json()["url"].as_str().unwrap().to_owned();
        let link = json!({ "link": url.split_once("#link=").unwrap().1 });
        let trade = ("POST", "/v1/links/trade", link);
        let traded = Box::pin(self.send(Who::Nobody, trade, &[])).await;
        assert_eq!(traded.status, 200, "{traded:?}");
        format!("Bearer {}", traded.json()["token"].as_str().unwrap())
    }

    async fn connect(&self) -> Client {
        Client::over(TcpStream::connect(self.address).await.unwrap()).await
    }

    /// Sends a request; more fields come behind the token.
    async fn send(&self, who: Who, request: (&str, &str, Value), more: &[(&str, &str)]) -> Answer {
        let (method, path, body) = request;
        let field = self.field(who).await;
        let mut fields: Vec<(&str, &str)> =
            field.iter().map(|field| ("authorization", field.as_str())).collect();
        fields.extend(more);
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let begun = self.connect().await.begin_with(method, path, &fields, body).await;
        let is_endless = begun
            .headers()
            .get("content-type")
            .is_some_and(|kind| begun.status() == 200 && kind == "text/event-stream");
        if is_endless {
            let headers = begun.headers().clone();
            return Answer { status: 200, headers, body: Bytes::new() };
        }
        Answer::whole(begun).await
    }

    /// Starts a process that runs until it is stopped; returns its id.
    async fn child(&self, who: Who, more: Value) -> String {
        let mut request = json!({ "command": argv("sleep-ms 600000"), "stdin": "open" });
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = self.send(who, ("POST", "/v1/processes", request), &[]).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["process"]["id"].as_str().unwrap().to_owned()
    }
}

/// A route, a body for it, and the statuses for [`EVERYBODY`].
type Row = (&'static str, &'static str, fn() -> Value, [u16; 10]);

const NOTHING: fn() -> Value = || Value::Null;

/// `{id}` is a running process of the session `a`. The order is: all, own session, another session,
/// read-only, expired, no token; pages: of everything, of the process, of another, read-only.
fn native() -> Vec<Row> {
    let start = || json!({ "command": argv("exit 0") });
    let wait = || json!({ "timeout_ms": 1 });
    let size = || json!({ "rows": 2, "cols": 2 });
    let selected = || json!({ "select": { "ids": ["00000000-0000-7000-8000-000000000000"] }});
    let wait_many = || json!({ "select": { "session": "a" }, "wait": { "timeout_ms": 1 }});
    let signal_many = || json!({ "select": { "label": "no=one" }, "signal": "CONT" });
    vec![
        ("GET", "/v1", NOTHING, [200, 200, 200, 200, 401, 401, 200, 200, 200, 200]),
        ("GET", "/openapi.json", NOTHING, [200, 200, 200, 200, 401, 401, 200, 200, 200, 200]),
        ("GET", "/healthz", NOTHING, [200, 200, 200, 200, 200, 200, 200, 200, 200, 200]),
        ("POST", "/v1/links", || json!({}), [201, 201, 201, 201, 401, 401, 403, 403, 403, 403]),
        (
            "POST",
            "/v1/links/trade",
            || json!({ "link": "none" }),
            [410, 410, 410, 410, 410, 410, 410, 410, 410, 410],
        ),
        ("POST", "/v1/tickets", NOTHING, [201, 201, 201, 201, 401, 401, 201, 201, 201, 201]),
        ("GET", "/metrics", NOTHING, [200, 403, 403, 200, 401, 401, 200, 403, 403, 403]),
        ("GET", "/v1/events", NOTHING, [200, 200, 200, 200, 401, 401, 200, 403, 403, 403]),
        ("GET", "/v1/tokens", NOTHING, [200, 403, 403, 403, 401, 401, 403, 403, 403, 403]),
        ("POST", "/v1/tokens", || json!({}), [201, 403, 403, 403, 401, 401, 403, 403, 403, 403]),
        (
            "DELETE",
            "/v1/tokens/{token}",
            NOTHING,
            [404, 403, 403, 403, 401, 401, 403, 403, 403, 403],
        ),
        // This server is no gateway.
        ("GET", "/v1/nodes", NOTHING, [422, 422, 422, 422, 401, 401, 422, 403, 403, 403]),
        ("DELETE", "/v1/nodes/{node}", NOTHING, [422, 403, 403, 403, 401, 401, 403, 403, 403, 403]),
        (
            "POST",
            "/v1/nodes/{node}/drain",
            || json!({}),
            [422, 403, 403, 403, 401, 401, 403, 403, 403, 403],
        ),
        // A program that is not absolute is refused before anything else.
        (
            "POST",
            "/v1/upgrade",
            || json!({ "binary": "x" }),
            [400, 403, 403, 403, 401, 401, 403, 403, 403, 403],
        ),
        ("POST", "/v1/processes", start, [201, 201, 201, 403, 401, 401, 201, 403, 403, 403]),
        ("GET", "/v1/processes", NOTHING, [200, 200, 200, 200, 401, 401, 200, 403, 403, 403]),
        ("GET", "/v1/processes/{id}", NOTHING, [200, 200, 404, 200, 401, 401, 200, 200, 404, 200]),
        (
            "GET",
            "/v1/processes/{id}/receipt",
            NOTHING,
            [200, 200, 404, 200, 401, 401, 200, 200, 404, 200],
        ),
        (
            "GET",
            "/v1/processes/{id}/output",
            NOTHING,
            [200, 200, 404, 200, 401, 401, 200, 200, 404, 200],
        ),
        (
            "GET",
            "/v1/processes/{id}/output/search?pattern=x",
            NOTHING,
            [200, 200, 404, 200, 401, 401, 200, 200, 404, 200],
        ),
        (
            "GET",
            "/v1/processes/{id}/output/times",
            NOTHING,
            [200, 200, 404, 200, 401, 401, 200, 200, 404, 200],
        ),
        (
            "GET",
            "/v1/processes/{id}/follow",
            NOTHING,
            [200, 200, 404, 200, 401, 401, 200, 200, 404, 200],
        ),
        (
            "GET",
            "/v1/processes/{id}/output/lines",
            NOTHING,
            [200, 200, 404, 200, 401, 401, 200, 200, 404, 200],
        ),
        // A request that is no WebSocket is refused with 400 if it is let in.
        (
            "GET",
            "/v1/processes/{id}/attach",
            NOTHING,
            [400, 400, 404, 403, 401, 401, 400, 400, 404, 403],
        ),
        (
            "GET",
            "/v1/processes/{id}/survivors",
            NOTHING,
            [200, 200, 404, 200, 401, 401, 200, 200, 404, 200],
        ),
        (
            "POST",
            "/v1/processes/{id}/wait",
            wait,
            [200, 200, 404, 200, 401, 401, 200, 200, 404, 200],
        ),
        (
            "POST",
            "/v1/processes/{id}/stdin",
            NOTHING,
            [200, 200, 404, 403, 401, 401, 200, 200, 404, 403],
        ),
        (
            "POST",
            "/v1/processes/{id}/signal",
            || json!({ "signal": "CONT" }),
            [200, 200, 404, 403, 401, 401, 200, 403, 403, 403],
        ),
        (
            "POST",
            "/v1/processes/{id}/resize",
            size,
            [409, 409, 404, 403, 401, 401, 409, 409, 404, 403],
        ),
        (
            "DELETE",
            "/v1/processes/{id}",
            NOTHING,
            [409, 409, 404, 403, 401, 401, 409, 403, 403, 403],
        ),
        ("POST", "/v1/wait", wait_many, [200, 200, 200, 200, 401, 401, 200, 403, 403, 403]),
        ("POST", "/v1/signal", signal_many, [200, 200, 200, 403, 401, 401, 200, 403, 403, 403]),
        ("POST", "/v1/forget", selected, [200, 200, 200, 403, 401, 401, 200, 403, 403, 403]),
        ("POST", "/v1/stop", selected, [200, 200, 200, 403, 401, 401, 200, 403, 403, 403]),
        (
            "POST",
            "/v1/processes/{id}/stop",
            NOTHING,
            [200, 200, 404, 403, 401, 401, 200, 403, 403, 403],
        ),
        ("POST", "/v1/shutdown", NOTHING, [202, 403, 403, 403, 401, 401, 403, 403, 403, 403]),
    ]
}

fn coder() -> Vec<Row> {
    let start = || json!({ "command": "true" });
    let signal = || json!({ "signal": "bogus" });
    vec![
        (
            "POST",
            "/api/v0/processes/start",
            start,
            [200, 200, 200, 403, 401, 401, 200, 403, 403, 403],
        ),
        (
            "GET",
            "/api/v0/processes/list",
            NOTHING,
            [200, 200, 200, 200, 401, 401, 200, 403, 403, 403],
        ),
        (
            "GET",
            "/api/v0/processes/{id}/output",
            NOTHING,
            [200, 200, 404, 200, 401, 401, 200, 403, 403, 403],
        ),
        // With an invalid signal: 400 is for those that may signal. A process that is not there is
        // looked for after the signal, as in Coder's agent.
        (
            "POST",
            "/api/v0/processes/{id}/signal",
            signal,
            [400, 400, 400, 403, 401, 401, 400, 403, 403, 403],
        ),
        (
            "GET",
            "/api/v0/processes/tokens/{token}",
            NOTHING,
            [404, 404, 404, 404, 401, 401, 404, 403, 403, 403],
        ),
    ]
}

fn agents() -> Vec<Row> {
    let list = || json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    vec![("POST", "/mcp", list, [200, 200, 200, 200, 401, 401, 200, 200, 200, 200])]
}

/// What a client of the door for agents sends with each message.
const MESSAGE: [(&str, &str); 2] =
    [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];

/// Paths that become a WebSocket, and the statuses for [`EVERYBODY`].
fn codex() -> Vec<(&'static str, [u16; 10])> {
    vec![("/codex", [101, 101, 101, 403, 401, 401, 101, 403, 403, 403])]
}

#[tokio::test]
async fn every_route_answers_each_token_as_the_table_says() {
    for (method, path, body, statuses) in coder().into_iter().chain(agents()).chain(native()) {
        // A new one for each row, so that wrong tokens do not add up.
        let server = Tokens::start().await;
        for (who, status) in EVERYBODY.into_iter().zip(statuses) {
            let path = path.replace("{id}", &server.process);
            let path = path.replace("{token}", "none").replace("{node}", "none");
            let fields: &[_] = if path == "/mcp" { &MESSAGE } else { &[] };
            let answer = server.send(who, (method, &path, body()), fields).await;
            assert_eq!(answer.status, status, "{who:?} {method} {path}: {answer:?}");
        }
    }
}

#[test]
fn the_tables_have_every_route_of_every_door() {
    let routes = |table: Vec<Row>| -> BTreeSet<_> {
        let without_query = |path: &'static str| path.split('?').next().unwrap_or_default();
        table.into_iter().map(|(method, path, ..)| (method, without_query(path))).collect()
    };
    assert_eq!(routes(native()), http::offered().collect());
    assert_eq!(routes(coder()), coder::offered().collect());
    let table: BTreeSet<_> = codex().into_iter().map(|(path, _)| path).collect();
    assert_eq!(table, codex::offered().collect());
}

#[test]
fn the_table_has_every_route_of_the_door_for_agents() {
    let table: Vec<_> = agents().iter().map(|(method, path, ..)| (*method, *path)).collect();
    assert_eq!(table, mcp::offered().collect::<Vec<_>>());
}

#[tokio::test]
async fn each_tool_answers_each_token_within_its_scope() {
    let server = Tokens::start().await;
    let id = server.process.clone();
    let process = || json!({ "process_id": id, "timeout": 1, "pattern": "x", "command": "true" });
    let (none, not_there) = ("", "no process with the id or name");
    let read_only = "the token is read-only, so it cannot be used for ";
    for (tool, names, want) in [
        ("read_output", &["process_id"][..], [not_there, none, not_there, none]),
        ("wait", &["process_id", "timeout"], [not_there, none, not_there, none]),
        ("search_output", &["process_id", "pattern"], [not_there, none, not_there, none]),
        ("list_processes", &[], [none, none, none, none]),
        ("exec_command", &["command"], [none, none, none, read_only]),
        ("write_stdin", &["process_id"], [not_there, none, not_there, read_only]),
        ("stop_process", &["process_id"], [not_there, none, not_there, read_only]),
    ] {
        let arguments: serde_json::Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), process()[*name].clone())).collect();
        let params = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        // The header is for a session that no process of theirs is in.
        let fields = [&MESSAGE[..], &[("lastbyte-session", "c")]].concat();
        for (who, want) in [Who::All, Who::Own, Who::Other].into_iter().zip(want) {
            let answer = server.send(who, ("POST", "/mcp", call.clone()), &fields).await;
            check_told(&answer, want, &format!("{who:?} {tool}"));
        }
        let answer = server.send(Who::ReadOnly, ("POST", "/mcp", call), &MESSAGE).await;
        check_told(&answer, want[3], &format!("read-only {tool}"));
    }
}

fn check_told(answer: &Answer, refused: &str, what: &str) {
    let result = answer.json()["result"].clone();
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(result["isError"] == true, !refused.is_empty(), "{what}: {text}");
    assert!(text.contains(refused), "{what}: {text}");
}

#[tokio::test]
async fn a_process_of_another_session_looks_like_one_that_is_not_there() {
    let server = Tokens::start().await;
    let id = server.process.clone();
    let missing = "00000000-0000-7000-8000-000000000000";
    for (method, path, body, statuses) in coder().into_iter().chain(native()) {
        if statuses[2] != 404 || !path.contains("{id}") {
            continue;
        }
        let of = |id: &str| path.replace("{id}", id);
        let hidden = server.send(Who::Other, (method, &of(&id), body()), &[]).await;
        let absent = server.send(Who::Other, (method, &of(missing), body()), &[]).await;
        let text = |answer: &Answer| String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(text(&hidden).replace(&id, missing), text(&absent), "{method} {path}");
    }
    for part in [&id[id.len() - 8..], "last", "web"] {
        let path = format!("/v1/processes/{part}");
        let answer = server.send(Who::Other, ("GET", &path, Value::Null), &[]).await;
        assert_eq!(answer.status, 404, "{part}");
    }
}

#[tokio::test]
async fn no_query_body_or_header_widens_a_token_of_a_session() {
    let server = Tokens::start().await;
    let chat = [("Coder-Chat-Id", "0a1b2c3d-0000-4000-8000-00000000000a")];
    let ids = |answer: Answer| answer.json()["processes"].as_array().unwrap().len();
    for path in ["/v1/processes", "/v1/processes?session=a", "/api/v0/processes/list"] {
        let listed = server.send(Who::Other, ("GET", path, Value::Null), &chat).await;
        assert_eq!(ids(listed), 0, "{path}");
    }
    for select in [json!({ "all": true }), json!({ "session": "a" })] {
        let stop = json!({ "select": select });
        let stopped = server.send(Who::Other, ("POST", "/v1/stop", stop), &[]).await;
        assert_eq!(ids(stopped), 0, "{select}");
    }
    let health = server.send(Who::Other, ("GET", "/healthz", Value::Null), &[]).await.json();
    assert_eq!((&health["running"], &health["processes"]), (&json!(0), &json!(0)));
    let public = server.send(Who::Nobody, ("GET", "/healthz", Value::Null), &[]).await.json();
    assert_eq!(public.get("processes"), None);
    let kill = format!("/api/v0/processes/{}/signal", server.process);
    let killed = ("POST", kill.as_str(), json!({ "signal": "kill" }));
    assert_eq!(server.send(Who::Other, killed, &chat).await.status, 404);
    let elsewhere = json!({ "command": argv("exit 0"), "session": "a" });
    let refused = server.send(Who::Other, ("POST", "/v1/processes", elsewhere), &[]).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "session_token"));
    let start = ("POST", "/api/v0/processes/start", json!({ "command": "true" }));
    let started = server.send(Who::Other, start, &chat).await.json();
    let path = format!("/v1/processes/{}", started["id"].as_str().unwrap());
    let shown = server.send(Who::All, ("GET", &path, Value::Null), &[]).await.json();
    assert_eq!(shown["session"], "b");
}

#[tokio::test]
async fn names_and_keys_of_other_sessions_are_free() {
    let server = Tokens::start().await;
    let named = || json!({ "name": "web", "key": "k" });
    let unbound = server.child(Who::All, named()).await;
    let of_a = server.child(Who::Own, named()).await;
    let of_b = server.child(Who::Other, named()).await;
    assert_eq!(BTreeSet::from([&unbound, &of_a, &of_b]).len(), 3);
    for (who, id) in [(Who::Own, &of_a), (Who::Other, &of_b)] {
        let shown = server.send(who, ("GET", "/v1/processes/web", Value::Null), &[]).await.json();
        assert_eq!(shown["id"], **id, "{who:?}");
    }
    // Within a session both are as they are without one.
    let mut again = json!({ "command": argv("sleep-ms 600000"), "stdin": "open" });
    again["name"] = json!("web");
    let taken = server.send(Who::Own, ("POST", "/v1/processes", again.clone()), &[]).await;
    assert_eq!(taken.code(), "name_taken");
    again["key"] = json!("k");
    let attached = server.send(Who::Own, ("POST", "/v1/processes", again), &[]).await;
    assert_eq!((attached.status, &attached.json()["process"]["id"]), (200, &json!(of_a)));
}

/// The key is stored with its session; no answer shows that.
#[tokio::test]
async fn a_client_with_a_token_of_a_session_is_shown_the_key_that_it_sent() {
    let server = Tokens::start().await;
    for key in ["k", "session:1:a:k", "unbound:k"] {
        for who in [Who::Own, Who::All] {
            let id = server.child(who, json!({ "key": key })).await;
            let show = format!("/v1/processes/{id}");
            let shown = server.send(who, ("GET", &show, Value::Null), &[]).await.json();
            assert_eq!(shown["key"], key, "{who:?}");
            let list = ("GET", "/v1/processes", Value::Null);
            let listed = server.send(who, list, &[]).await.json();
            let processes = listed["processes"].as_array().unwrap();
            let of_id = processes.iter().find(|process| process["id"] == *id).unwrap();
            assert_eq!(of_id["key"], key, "{who:?}");
            let path = format!("/v1/processes/{id}/receipt");
            let receipt = server.send(who, ("GET", &path, Value::Null), &[]).await.json();
            assert_eq!(receipt["process"]["key"], key, "{who:?} {receipt}");
            let other = json!({ "command": argv("exit 1"), "key": key });
            let refused = server.send(who, ("POST", "/v1/processes", other), &[]).await;
            assert_eq!(refused.code(), "key_conflict");
            let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.starts_with(&format!("the key {key:?} was already used")), "{message}");
        }
    }
}

#[tokio::test]
async fn the_feed_has_only_events_of_the_tokens_session() {
    let server = Tokens::start().await;
    let field = server.field(Who::Other).await.unwrap();
    let fields = [("authorization", field.as_str())];
    // With an event from before the start: everything that is kept.
    for path in ["/v1/events", "/v1/events?last_event_id=0-0"] {
        let mut feed = server.connect().await.begin_with("GET", path, &fields, Bytes::new()).await;
        server.child(Who::Own, json!({})).await;
        let id = server.child(Who::Other, json!({})).await;
        let mut text = String::new();
        while !text.contains(&id) {
            let next = http_body_util::BodyExt::frame(feed.body_mut());
            let frame = timeout(PATIENCE, next).await.unwrap().unwrap().unwrap();
            text += str::from_utf8(&frame.into_data().unwrap()).unwrap();
        }
        assert!(!text.contains("\"session\":\"a\""), "{text}");
    }
}

#[tokio::test]
async fn a_revoked_token_ends_open_answers_and_is_refused_from_then_on() {
    let server = Tokens::start().await;
    let scope = TokenScope::Session { name: "a".into() };
    let made = server.created.create(scope, None, None).unwrap();
    let field = format!("Bearer {}", made.token);
    let fields = [("authorization", field.as_str())];
    let path = format!("/v1/processes/{}/follow", server.process);
    let mut client = server.connect().await;
    let follow = client.begin_with("GET", &path, &fields, Bytes::new()).await;
    assert_eq!(follow.status(), 200);
    let mut waiting = server.connect().await;
    let wait = Bytes::from(json!({ "exit": true }).to_string());
    let path = format!("/v1/processes/{}/wait", server.process);
    let wait = waiting.begin_with("POST", &path, &fields, wait);
    let revoke = async {
        let path = format!("/v1/tokens/{}", made.info.id);
        server.send(Who::All, ("DELETE", &path, Value::Null), &[]).await
    };
    let (waited, revoked) = timeout(PATIENCE, async { tokio::join!(wait, revoke) }).await.unwrap();
    assert_eq!((waited.status().as_u16(), revoked.status), (401, 204));
    timeout(PATIENCE, Answer::whole(follow)).await.unwrap();
    let after = server.connect().await.begin_with("GET", "/v1", &fields, Bytes::new()).await;
    assert_eq!(after.status(), 401);
}

#[tokio::test]
async fn websockets_follow_the_table_and_end_with_their_token() {
    let server = Tokens::start().await;
    let attach = format!("/v1/processes/{}/attach", server.process);
    let attach = (attach.as_str(), [101, 101, 404, 403, 401, 401, 101, 101, 404, 403]);
    for (path, statuses) in codex().into_iter().chain([attach]) {
        for (who, status) in EVERYBODY.into_iter().zip(statuses) {
            let answer = upgraded(&server, path, server.field(who).await).await.map(drop);
            assert_eq!(answer.err().unwrap_or(101), status, "{who:?} {path}");
        }
        let scope = TokenScope::Session { name: "a".into() };
        let made = server.created.create(scope, None, None).unwrap();
        let mut socket =
            upgraded(&server, path, Some(format!("Bearer {}", made.token))).await.unwrap();
        server.created.revoke(&made.info.id).unwrap();
        let ended =
            async { while let Some(Ok(_)) = futures_util::StreamExt::next(&mut socket).await {} };
        timeout(PATIENCE, ended).await.unwrap();
    }
}

type WebSocket = tokio_tungstenite::WebSocketStream<TcpStream>;

/// A WebSocket, or the status that refuses it.
async fn upgraded(server: &Tokens, path: &str, token: Option<String>) -> Result<WebSocket, u16> {
    use tokio_tungstenite::tungstenite::client::IntoClientRequest;
    let mut request = format!("ws://localhost{path}").into_client_request().unwrap();
    if let Some(token) = token {
        request.headers_mut().insert("authorization", token.parse().unwrap());
    }
    let stream = TcpStream::connect(server.address).await.unwrap();
    match tokio_tungstenite::client_async(request, stream).await {
        Ok((socket, _)) => Ok(socket),
        Err(tokio_tungstenite::tungstenite::Error::Http(answer)) => Err(answer.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

/// A Codex client with this token, past its handshake.
struct Codex(WebSocket);

impl Codex {
    async fn open(server: &Tokens, who: Who) -> Self {
        let mut own = Self(upgraded(server, "/codex", server.field(who).await).await.unwrap());
        let client = json!({ "name": "n", "version": "0" });
        let capabilities = json!({ "experimentalApi": true });
        let hello = json!({ "clientInfo": client, "capabilities": capabilities });
        own.call("initialize", hello).await;
        own
    }

    async fn send(&mut self, method: &str, params: Value) {
        let request = json!({ "id": method, "method": method, "params": params }).to_string();
        let message = tokio_tungstenite::tungstenite::Message::text(request);
        futures_util::SinkExt::send(&mut self.0, message).await.unwrap();
    }

    /// Its answer; notifications before it are left out.
    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.send(method, params).await;
        loop {
            let next = futures_util::StreamExt::next(&mut self.0);
            let message = timeout(PATIENCE, next).await.unwrap().unwrap().unwrap();
            let answer: Value = serde_json::from_str(message.to_text().unwrap()).unwrap();
            if answer["id"] == method {
                return answer;
            }
        }
    }
}

/// Each method of the Codex door, with parameters, and whether it is about a command that was started
/// before.
fn codex_methods() -> Vec<(&'static str, Value, bool)> {
    let (id, handle) = (("processId", json!("one")), ("processHandle", json!("two")));
    let size = ("size", json!({ "rows": 2, "cols": 2 }));
    let close = ("closeStdin", json!(true));
    let exits = ("command", json!(argv("exit 0")));
    let object = |members: &[&(&str, Value)]| -> Value {
        let member = |(name, value): &(&str, Value)| ((*name).to_owned(), value.clone());
        Value::Object(members.iter().map(|one| member(one)).collect())
    };
    vec![
        ("command/exec", object(&[&exits]), false),
        ("command/exec/write", object(&[&id, &close]), true),
        ("command/exec/resize", object(&[&id, &size]), true),
        ("command/exec/terminate", object(&[&id]), true),
        ("process/spawn", object(&[&exits, &handle, &("cwd", json!("/"))]), false),
        ("process/writeStdin", object(&[&handle, &close]), true),
        ("process/resizePty", object(&[&handle, &size]), true),
        ("process/kill", object(&[&handle]), true),
    ]
}

#[tokio::test]
async fn the_table_has_every_method_of_the_codex_door() {
    let server = Tokens::start().await;
    let refused = Codex::open(&server, Who::Own).await.call("no/such", json!({})).await;
    let message = refused["error"]["message"].as_str().unwrap();
    let (_, offered) = message.split_once("expected one of ").unwrap();
    let offered: BTreeSet<&str> = offered.split(", ").map(|name| name.trim_matches('`')).collect();
    let table = codex_methods().into_iter().map(|(method, ..)| method);
    assert_eq!(offered, table.chain(["initialize"]).collect());
}

#[tokio::test]
async fn a_codex_client_reaches_its_own_commands_and_starts_them_in_its_session() {
    let server = Tokens::start().await;
    let mut owner = Codex::open(&server, Who::Own).await;
    let tty =
        json!({ "command": argv("sleep-ms 600000"), "tty": true, "streamStdoutStderr": true });
    let mut exec = tty.clone();
    exec["processId"] = json!("one");
    owner.send("command/exec", exec).await;
    let mut spawn = tty;
    (spawn["processHandle"], spawn["cwd"]) = (json!("two"), json!("/"));
    spawn.as_object_mut().unwrap().remove("streamStdoutStderr");
    assert_eq!(owner.call("process/spawn", spawn).await.get("error"), None);
    for who in [Who::Other, Who::Own, Who::All] {
        let mut other = Codex::open(&server, who).await;
        for (method, params, _) in codex_methods().into_iter().filter(|(.., is_about)| *is_about) {
            let answer = other.call(method, params).await;
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(message.starts_with("no active"), "{who:?} {method}: {answer}");
        }
    }
    for (method, params, is_about) in codex_methods() {
        let is_end = ["command/exec/terminate", "process/kill"].contains(&method);
        if is_about && !is_end {
            let answer = owner.call(method, params).await;
            assert_eq!(answer.get("error"), None, "{method}");
        }
    }
    let mut other = Codex::open(&server, Who::Other).await;
    for (method, params, _) in codex_methods().into_iter().filter(|(.., is_about)| !is_about) {
        assert_eq!(other.call(method, params).await.get("error"), None, "{method}");
    }
    let listed = server.send(Who::Other, ("GET", "/v1/processes", Value::Null), &[]).await.json();
    let listed = listed["processes"].as_array().unwrap();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|process| process["session"] == "b"), "{listed:?}");
}

#[tokio::test]
async fn many_wrong_tokens_are_slowed_down_and_a_right_one_is_not() {
    let server = Tokens::start().await;
    let wrong = [("authorization", "Bearer lb_00000000_wrong")];
    let mut last = None;
    for _ in 0..21 {
        let answer = server.send(Who::Nobody, ("GET", "/v1", Value::Null), &wrong).await;
        last = Some((answer.status, answer.head("retry-after").map(str::to_owned)));
    }
    assert_eq!(last, Some((429, Some("60".to_owned()))));
    let right = server.send(Who::ReadOnly, ("GET", "/v1", Value::Null), &[]).await;
    assert_eq!(right.status, 200);
}
