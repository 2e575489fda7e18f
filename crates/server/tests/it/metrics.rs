//! `GET /metrics`: the numbers are correct through every API, and the text is in the format of
//! Prometheus.

mod page;

use lastbyte_server::Limits;
use lastbyte_server::doors::codex;
use lastbyte_testkit::eventually;
use lastbyte_wire::ErrorCode;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::codex::client::Client as CodexClient;
use crate::harness::{Answer, Server, argv, path};
use page::Page;

const PROCESSES: &str = "/v1/processes";

async fn scrape(server: &Server) -> Page {
    let answer = server.connect().await.get("/metrics").await;
    let kind = Some("text/plain; version=0.0.4; charset=utf-8");
    assert_eq!((answer.status, answer.head("content-type")), (200, kind));
    Page::parse(std::str::from_utf8(&answer.body).unwrap())
}

/// Runs a `testchild` to its end.
async fn run(server: &Server, actions: &str, more: Value) -> Value {
    let mut request = json!({ "wait": { "exit": true } });
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.start_child(actions, request).await
}

async fn start(server: &Server, request: Value) -> Answer {
    server.connect().await.post(PROCESSES, &request).await
}

/// How many requests of a route were answered, and how many of them were timed.
fn answered(page: &Page, method: &str, route: &str) -> (f64, f64) {
    let labels = [("method", method), ("route", route)];
    (
        page.value("lastbyte_http_requests_total", &labels),
        page.value("lastbyte_http_request_duration_seconds_count", &labels),
    )
}

fn endings(page: &Page, status: &str, cause: &str) -> f64 {
    page.value("lastbyte_endings_total", &[("status", status), ("cause", cause)])
}

fn refused_starts(page: &Page, code: &str) -> f64 {
    page.value("lastbyte_starts_refused_total", &[("code", code)])
}

#[tokio::test]
async fn starts_endings_and_bytes_are_counted() {
    let server = Server::start().await;
    let before = scrape(&server).await;
    for name in ["lastbyte_starts_total", "lastbyte_endings_total", "lastbyte_processes"] {
        assert_eq!(before.sum(name), 0.0, "{name}");
    }
    run(&server, "print hello", json!({})).await;
    run(&server, "exit 3", json!({})).await;
    run(&server, "kill-self 9", json!({})).await;
    run(&server, "hold", json!({ "timeout_ms": 1, "stop": { "signal": "KILL" } })).await;
    let large = json!({ "quota_bytes": 256 << 10 });
    let large = run(&server, "write-bytes 3000000", large).await;
    let (_anchor, held) = server.told(json!({})).await;
    let page = scrape(&server).await;

    assert_eq!(page.plain("lastbyte_starts_total"), 6.0);
    assert_eq!(page.plain("lastbyte_spawn_duration_seconds_count"), 6.0);
    assert_eq!(endings(&page, "exited", "own"), 3.0);
    assert_eq!(endings(&page, "signalled", "own"), 1.0);
    assert_eq!(endings(&page, "signalled", "timed_out"), 1.0);
    assert_eq!(page.sum("lastbyte_endings_total"), 5.0);
    assert_eq!(page.plain("lastbyte_output_stored_bytes_total"), 3_000_005.0);
    let dropped = large["output"]["dropped"].as_array().unwrap().iter();
    let length = |range: &Value| range["end"].as_f64().unwrap() - range["start"].as_f64().unwrap();
    let dropped: f64 = dropped.map(length).sum();
    assert!(dropped > 2_000_000.0, "{large}");
    assert_eq!(page.plain("lastbyte_output_dropped_bytes_total"), dropped);
    let on_disk = page.plain("lastbyte_log_disk_bytes");
    assert!((1.0..=page.plain("lastbyte_log_disk_quota_bytes")).contains(&on_disk), "{on_disk}");
    assert_eq!(page.value("lastbyte_processes", &[("phase", "running")]), 1.0);
    assert_eq!(page.value("lastbyte_processes", &[("phase", "ended")]), 5.0);

    server.connect().await.send("DELETE", &format!("{held}?stop=true"), "".into()).await;
    let page = scrape(&server).await;
    assert_eq!(endings(&page, "signalled", "stopped"), 1.0);
    assert_eq!(page.plain("lastbyte_forgotten_total"), 1.0);
    assert_eq!(page.sum("lastbyte_processes"), 5.0);
}

#[tokio::test]
async fn every_api_is_counted() {
    let server = Server::start().await;
    run(&server, "exit 0", json!({})).await;
    let mut client = server.connect().await;
    let coder = json!({ "command": "true" });
    let started = client.post("/api/v0/processes/start", &coder).await.json();
    let id = started["id"].as_str().unwrap().to_owned();
    let output = format!("/api/v0/processes/{id}/output");
    client.get(&format!("{output}?wait=true")).await;
    client.get(&output).await;
    let folder = tempfile::tempdir().unwrap();
    let settings = codex::Settings::new(folder.path(), folder.path());
    let mut codex = CodexClient::over_lines(&codex::Door::new(server.engine.clone(), settings));
    codex.initialize(json!({})).await;
    codex.call("command/exec", json!({ "command": argv("exit 0") })).await;
    let missing = codex.call("command/exec", json!({ "command": ["/no/such/program"] })).await;
    assert!(missing["error"].is_object(), "{missing}");

    let page = scrape(&server).await;
    assert_eq!(page.plain("lastbyte_starts_total"), 3.0);
    assert_eq!(endings(&page, "exited", "own"), 3.0);
    assert_eq!(refused_starts(&page, "program_not_found"), 1.0);
    assert_eq!(answered(&page, "POST", "/api/v0/processes/start"), (1.0, 1.0));
    assert_eq!(answered(&page, "GET", "/api/v0/processes/{id}/output"), (2.0, 1.0));
}

#[tokio::test]
async fn refusals_are_counted_by_their_code() {
    let server = Server::start().await;
    for request in [
        json!({ "command": ["/no/such/program"] }),
        json!({ "command": ["/etc/passwd"] }),
        json!({ "shell": "true", "cwd": "/no/such/folder" }),
        json!({ "shell": "true", "cwd": "/no/such/folder" }),
    ] {
        assert_eq!(start(&server, request).await.status, 422);
    }
    assert_eq!(start(&server, json!({ "shell": "true", "key": "k" })).await.status, 201);
    assert_eq!(start(&server, json!({ "shell": "true", "key": "k" })).await.status, 200);
    assert_eq!(start(&server, json!({ "shell": "false", "key": "k" })).await.status, 409);
    assert_eq!(start(&server, json!({ "nonsense": 1 })).await.status, 400);
    let mut client = server.connect().await;
    assert_eq!(client.get("/nowhere").await.status, 404);
    assert_eq!(client.send("PUT", PROCESSES, "".into()).await.status, 405);
    let headers = [("origin", "http://example.com")];
    let cross_site = client.begin_with("GET", "/v1", &headers, "".into()).await;
    assert_eq!(cross_site.status(), 403);

    let page = scrape(&server).await;
    assert_eq!(page.plain("lastbyte_starts_total"), 1.0);
    assert_eq!(page.sum("lastbyte_starts_refused_total"), 5.0);
    for (code, count) in [("program_not_found", 1.0), ("program_not_runnable", 1.0)] {
        assert_eq!(refused_starts(&page, code), count, "{code}");
    }
    assert_eq!(
        (refused_starts(&page, "bad_cwd"), refused_starts(&page, "key_conflict")),
        (2.0, 1.0)
    );
    for (code, count) in [
        ("bad_cwd", 2.0),
        ("key_conflict", 1.0),
        ("invalid_request", 1.0),
        ("route_not_found", 1.0),
        ("method_not_allowed", 1.0),
        ("cross_site", 1.0),
        ("unauthorized", 0.0),
    ] {
        let counted = page.value("lastbyte_http_refusals_total", &[("code", code)]);
        assert_eq!(counted, count, "{code}");
    }
    assert_eq!(page.sum("lastbyte_http_refusals_total"), 9.0);
}

/// The complete answer of a server to these bytes.
async fn said_to(server: &Server, bytes: &str) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_heads_are_counted() {
    let server = Server::start().await;
    let counted = |wanted: ErrorCode| {
        let mut all = server.traffic.refusals();
        all.find_map(|(code, count)| (code == wanted).then_some(count)).unwrap()
    };
    let fields = "x: y\r\n".repeat(Limits::default().head_fields + 1);
    let large = said_to(&server, &format!("GET / HTTP/1.1\r\n{fields}\r\n")).await;
    assert!(large.starts_with("HTTP/1.1 431 "), "{large}");
    eventually("it is counted", || counted(ErrorCode::HeadTooLarge) == 1);
    for bad in ["GET /\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"] {
        let bad = said_to(&server, bad).await;
        assert!(bad.starts_with("HTTP/1.1 400 "), "{bad}");
    }
    eventually("they are counted", || counted(ErrorCode::InvalidRequest) == 2);
    assert_eq!(said_to(&server, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await, "");
    let page = scrape(&server).await;
    let too_large = page.value("lastbyte_http_refusals_total", &[("code", "head_too_large")]);
    assert_eq!((too_large, page.sum("lastbyte_http_refusals_total")), (1.0, 3.0));
}

#[tokio::test]
async fn requests_that_wait_are_counted_without_a_duration() {
    let server = Server::start().await;
    let (_anchor, held) = server.told(json!({})).await;
    let mut client = server.connect().await;
    let timeout = json!({ "timeout_ms": 1 });
    client.post(&format!("{held}/wait"), &timeout).await;
    client.get(&format!("{held}/output?wait_ms=1")).await;
    client.get(&format!("{held}/output")).await;
    let ended = run(&server, "exit 0", json!({})).await;
    client.send("DELETE", &format!("{held}?stop=true"), "".into()).await;
    client.send("DELETE", &path(&ended), "".into()).await;

    let page = scrape(&server).await;
    assert_eq!(answered(&page, "POST", PROCESSES), (2.0, 1.0));
    assert_eq!(answered(&page, "GET", "/v1/processes/{id}/output"), (2.0, 1.0));
    assert_eq!(answered(&page, "DELETE", "/v1/processes/{id}"), (2.0, 1.0));
    let wait = [("method", "POST"), ("route", "/v1/processes/{id}/wait")];
    assert_eq!(page.value("lastbyte_http_requests_total", &wait), 1.0);
    let timed = page.sum("lastbyte_http_request_duration_seconds_count");
    assert_eq!(page.sum("lastbyte_http_requests_total"), timed + 4.0);
}

#[tokio::test]
async fn refused_requests_that_asked_to_wait_are_counted_without_a_duration() {
    let server = Server::start().await;
    let missing = json!({ "command": ["/no/such/program"], "wait": { "exit": true } });
    assert_eq!(start(&server, missing).await.status, 422);
    let (_anchor, held) = server.told(json!({})).await;
    let mut client = server.connect().await;
    let output = client.get(&format!("{held}/output?wait_ms=1&max_bytes=0")).await;
    assert_eq!(output.status, 400, "{output:?}");
    let stuck = path(&run(&server, "write-bytes 5000", json!({})).await);
    // A folder in place of its index cannot be removed as a file.
    let process = server.engine.get(stuck.rsplit('/').next().unwrap().parse().unwrap()).unwrap();
    let index = process.log_file().unwrap().with_extension("index");
    _ = std::fs::remove_file(&index);
    std::fs::create_dir(index).unwrap();
    let forgotten = client.send("DELETE", &format!("{stuck}?stop=true"), "".into()).await;
    assert_eq!(forgotten.status, 500, "{forgotten:?}");

    let page = scrape(&server).await;
    assert_eq!(answered(&page, "POST", PROCESSES), (3.0, 1.0));
    assert_eq!(answered(&page, "GET", "/v1/processes/{id}/output"), (1.0, 0.0));
    assert_eq!(answered(&page, "DELETE", "/v1/processes/{id}"), (1.0, 0.0));
}

#[tokio::test]
async fn an_endless_answer_is_timed_to_its_head() {
    let server = Server::start().await;
    let (_anchor, held) = server.told(json!({})).await;
    let events = server.connect().await.begin("GET", "/v1/events", "".into()).await;
    let follow = server.connect().await.begin("GET", &format!("{held}/follow"), "".into()).await;
    let page = scrape(&server).await;
    assert_eq!(answered(&page, "GET", "/v1/events"), (1.0, 1.0));
    assert_eq!(answered(&page, "GET", "/v1/processes/{id}/follow"), (1.0, 1.0));
    assert_eq!(page.plain("lastbyte_http_waits"), 2.0);
    drop((events, follow));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_connections_are_counted() {
    let limits = Limits { connections: 3, reserved_connections: 0, ..Limits::default() };
    let server = Server::with(limits).await;
    let mut clients = [server.connect().await, server.connect().await, server.connect().await];
    for client in &mut clients {
        client.get("/healthz").await;
    }
    let [mut one, two, third] = clients;
    eventually("all places are taken", || server.traffic.connections() == 3);
    let silent = TcpStream::connect(server.address).await.unwrap();
    eventually("one is turned away", || server.traffic.rejected() == 1);
    assert_eq!(server.connect().await.get("/healthz").await.status, 503);
    drop((two, third, silent));
    eventually("one is left", || server.traffic.connections() == 1);
    let page = one.get("/metrics").await;
    let page = Page::parse(std::str::from_utf8(&page.body).unwrap());
    assert_eq!(page.plain("lastbyte_connections"), 1.0);
    assert_eq!(page.plain("lastbyte_connections_max"), 3.0);
    assert_eq!(page.plain("lastbyte_connections_accepted_total"), 3.0);
    assert_eq!(page.plain("lastbyte_connections_turned_away_total"), 2.0);
    let told = [("code", "too_many_connections")];
    assert_eq!(page.value("lastbyte_http_refusals_total", &told), 1.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_numbers_are_correct_with_sixteen_clients_at_once() {
    let server = Server::start().await;
    let mut clients = JoinSet::new();
    for _ in 0..16 {
        let mut client = server.connect().await;
        clients.spawn(async move {
            let wait = json!({ "exit": true });
            let request = json!({ "command": argv("write-bytes 1000"), "wait": wait });
            for _ in 0..8 {
                let started = client.post(PROCESSES, &request).await;
                assert_eq!(started.status, 201, "{started:?}");
                let shown = client.get(&path(&started.json())).await;
                assert_eq!(shown.json()["phase"], "ended");
                // Every page that is read in between is valid.
                let page = client.get("/metrics").await;
                Page::parse(std::str::from_utf8(&page.body).unwrap());
            }
        });
    }
    clients.join_all().await;
    let page = scrape(&server).await;
    assert_eq!(page.plain("lastbyte_starts_total"), 128.0);
    assert_eq!(page.plain("lastbyte_output_stored_bytes_total"), 128_000.0);
    assert_eq!(endings(&page, "exited", "own"), 128.0);
    assert_eq!(answered(&page, "POST", PROCESSES), (128.0, 0.0));
    assert_eq!(answered(&page, "GET", "/v1/processes/{id}"), (128.0, 128.0));
    assert_eq!(answered(&page, "GET", "/metrics"), (128.0, 128.0));
}

#[tokio::test]
async fn the_phases_add_up_to_the_list() {
    let server = Server::start().await;
    let mut held = Vec::new();
    for _ in 0..3 {
        run(&server, "exit 0", json!({})).await;
        held.push(server.told(json!({})).await);
    }
    let page = scrape(&server).await;
    let mut client = server.connect().await;
    for phase in ["running", "draining", "ended"] {
        let listed = client.get(&format!("{PROCESSES}?phase={phase}")).await.json();
        let listed = listed["processes"].as_array().unwrap().len() as f64;
        assert_eq!(page.value("lastbyte_processes", &[("phase", phase)]), listed, "{phase}");
    }
    assert_eq!(page.sum("lastbyte_processes"), 6.0);
}

/// No request adds a series.
#[tokio::test]
async fn no_label_contains_client_data() {
    let server = Server::start().await;
    let before = scrape(&server).await;
    let mut client = server.connect().await;
    let id = path(&run(&server, "exit 0", json!({ "labels": { "x": "y" } })).await);
    for path in ["/nowhere", "/v1/processes/none", &id, "/api/v0/processes/x/output", "/api/v0/x"] {
        client.get(path).await;
    }
    client.send("PROPFIND", "/v1", "".into()).await;
    let after = scrape(&server).await;
    for label in ["method", "route", "code", "status", "cause", "phase", "le", "version"] {
        assert_eq!(before.values_of(label), after.values_of(label), "{label}");
    }
}

#[tokio::test]
async fn the_process_metrics_have_their_usual_names() {
    let server = Server::start().await;
    let page = scrape(&server).await;
    assert_eq!(page.value("lastbyte_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), 1.0);
    for name in [
        "process_start_time_seconds",
        "process_cpu_seconds_total",
        "process_threads",
        "process_virtual_memory_bytes",
        "process_resident_memory_bytes",
        "process_open_fds",
    ] {
        assert!(page.plain(name) > 0.0, "{name}");
    }
    assert!(page.plain("process_max_fds") > page.plain("process_open_fds"));
}
