//! A client that does not read costs its own commands, and some memory, and loses nothing.

use lastbyte_testkit::{eventually, pattern_bytes};
use serde_json::json;

use super::fixture::{Fixture, result, run};

#[tokio::test(flavor = "multi_thread")]
async fn a_tail_that_nobody_read_in_time_is_not_lost() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    client.read_on(false);
    let mut begun = Vec::new();
    for (n, size) in [300_000_u64, 700_000, 8_000_000].into_iter().enumerate() {
        let more = json!({"processId": n.to_string(), "streamStdoutStderr": true, "disableOutputCap": true});
        begun.push((
            client.request("command/exec", run(&format!("write-bytes {size} then join"), more)),
            n,
            size,
        ));
    }
    // All three have written everything and gone.
    fixture.anchor.wait_for_at_most(0);
    eventually("all logs are whole", || log_bytes(&fixture) == 9_000_000);
    client.read_on(true);
    for (request, n, size) in begun {
        assert_eq!(result(&client.answer(request).await).0, 0);
        assert_eq!(client.output(&n.to_string(), "stdout"), pattern_bytes(0..size));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_that_nobody_reads_waits_and_disturbs_no_other_client() {
    let fixture = Fixture::new();
    let mut stuck = fixture.client().await;
    let more = json!({"processId": "f", "streamStdoutStderr": true, "disableOutputCap": true});
    let begun = stuck.request("command/exec", run("join then flood", more));
    fixture.anchor.wait_for(1);
    stuck.read_on(false);
    eventually("the flood waits", || log_bytes(&fixture) > 60 << 20);
    let mut other = fixture.client().await;
    for _ in 0..20 {
        assert_eq!(result(&other.exec(run("print ok", json!({}))).await), (0, "ok", ""));
    }
    // What is asked of the stuck one is done, though the client hears of it later.
    stuck.request("command/exec/terminate", json!({"processId": "f"}));
    fixture.anchor.wait_for_at_most(0);
    assert!(log_bytes(&fixture) < 70 << 20, "the quota holds");
    stuck.read_on(true);
    assert_eq!(result(&stuck.answer(begun).await).0, 137);
    let output = stuck.output("f", "stdout");
    assert_eq!(output, pattern_bytes(0..output.len() as u64), "what came is without a gap");
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_that_nobody_reads_take_little_memory() {
    let fixture = Fixture::new();
    let mut stuck = fixture.client().await;
    stuck.read_on(false);
    let before = resident_bytes();
    for n in 0..4 {
        let more = json!({"processId": n.to_string(), "streamStdoutStderr": true, "disableOutputCap": true});
        stuck.request("command/exec", run("flood", more));
    }
    eventually("all four wait", || log_bytes(&fixture) > 240 << 20);
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 40 << 20, "{grown} bytes");
}

/// What lies in logs, without their indexes.
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
