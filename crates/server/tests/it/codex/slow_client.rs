//! A client that does not read slows only its own commands, costs little memory, and loses nothing.

use std::time::Duration;

use lastbyte_server::Limits;
use lastbyte_testkit::{eventually, pattern_bytes};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::client::Client;
use super::fixture::{Fixture, result, run};
use super::transport::{Transport, listen};

/// Streams all output of a command.
fn all_of(id: &str) -> Value {
    json!({"processId": id, "streamStdoutStderr": true, "disableOutputCap": true})
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_is_read_late_is_not_lost() {
    for transport in Transport::ALL {
        let fixture = Fixture::new();
        let mut client = transport.client(&fixture).await;
        client.read_on(false);
        let mut begun = Vec::new();
        for (id, size) in [("a", 300_000_u64), ("b", 700_000), ("c", 8_000_000)] {
            let params = run(&format!("write-bytes {size} then join"), all_of(id));
            begun.push((client.request("command/exec", params), id, size));
        }
        // All three have written everything and exited.
        fixture.anchor.wait_for_at_most(0);
        eventually("all logs are whole", || log_bytes(&fixture) == 9_000_000);
        client.read_on(true);
        for (request, id, size) in begun {
            assert_eq!(result(&client.answer(request).await).0, 0);
            assert_eq!(client.output(id, "stdout"), pattern_bytes(0..size), "{transport:?}");
        }
    }
}

/// For longer than the server waits for other clients that do not read.
#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_that_does_not_read_for_long_is_not_closed() {
    let fixture = Fixture::new();
    let stall = Duration::from_secs(1);
    let address = listen(&fixture, Limits { stall, ..Limits::default() });
    let stream = TcpStream::connect(address).await.unwrap();
    // A small buffer, so that most of it has to wait.
    set_socket_recv_buffer_size(&stream, 64 << 10).unwrap();
    let mut client = Client::over_websocket(stream).await;
    client.initialize(json!({})).await;
    client.read_on(false);
    let size = 15_000_000;
    let begun = client.request("command/exec", run(&format!("write-bytes {size}"), all_of("slow")));
    eventually("all of it is there", || log_bytes(&fixture) == size);
    // The connection stays open during this time.
    _ = tokio::time::timeout(stall * 3, std::future::pending::<()>()).await;
    client.read_on(true);
    assert_eq!(result(&client.answer(begun).await).0, 0);
    assert_eq!(client.output("slow", "stdout"), pattern_bytes(0..size));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unread_flood_blocks_and_does_not_affect_other_clients() {
    let fixture = Fixture::new();
    let mut stuck = fixture.client().await;
    let begun = stuck.request("command/exec", run("join then flood", all_of("f")));
    fixture.anchor.wait_for(1);
    stuck.read_on(false);
    eventually("the flood waits", || log_bytes(&fixture) > 60 << 20);
    let mut other = fixture.client().await;
    for _ in 0..20 {
        assert_eq!(result(&other.exec(run("print ok", json!({}))).await), (0, "ok", ""));
    }
    // Requests of the stuck client are handled, although it reads the answers later.
    stuck.request("command/exec/terminate", json!({"processId": "f"}));
    fixture.anchor.wait_for_at_most(0);
    assert!(log_bytes(&fixture) < 70 << 20, "the quota holds");
    stuck.read_on(true);
    assert_eq!(result(&stuck.answer(begun).await).0, 137);
    let output = stuck.output("f", "stdout");
    assert_eq!(output, pattern_bytes(0..output.len() as u64), "what came is without a gap");
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_floods_take_little_memory() {
    for transport in Transport::ALL {
        let fixture = Fixture::new();
        let mut stuck = transport.client(&fixture).await;
        stuck.read_on(false);
        let before = resident_bytes();
        for id in ["a", "b", "c", "d"] {
            stuck.request("command/exec", run("flood", all_of(id)));
        }
        eventually("all four wait", || log_bytes(&fixture) > 240 << 20);
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < 40 << 20, "{grown} bytes over {transport:?}");
    }
}

/// The size of all logs, without their indexes.
fn log_bytes(fixture: &Fixture) -> u64 {
    let logs = std::fs::read_dir(fixture.folder.path().join("state/logs")).unwrap().flatten();
    let logs = logs.filter(|entry| entry.path().extension().is_some_and(|name| name == "log"));
    logs.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum()
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
