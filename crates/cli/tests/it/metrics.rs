//! `GET /metrics` of a real server: authorization, and counts after a crash.

use crate::daemon::Daemon;
use crate::harness::{Finished, finish};

/// What curl prints: the body, then the status.
fn curl(daemon: &Daemon, arguments: &[&str]) -> String {
    let mut curl = daemon.fixture.program("curl");
    curl.args(["-sS", "-w", "%{http_code}\n"]).args(arguments);
    let Finished { code, stdout, stderr } = finish(curl);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}");
    stdout
}

/// Over the unix socket.
fn scrape(daemon: &Daemon) -> String {
    let socket = daemon.socket();
    curl(daemon, &["--unix-socket", socket.to_str().unwrap(), "http://localhost/metrics"])
}

#[track_caller]
fn check(page: &str, lines: &[&str]) {
    for line in lines {
        assert!(page.lines().any(|one| one == *line), "no {line:?} in\n{page}");
    }
}

#[test]
fn after_a_crash_phases_are_correct_and_counters_start_at_0() {
    let mut daemon = Daemon::start();
    for actions in ["exit 0", "print x"] {
        let id = daemon.testchild(&[], actions);
        daemon.finish(&["wait", &id]);
    }
    check(&scrape(&daemon), &["lastbyte_processes{phase=\"ended\"} 2", "lastbyte_starts_total 2"]);
    daemon.kill();
    daemon.start_again();
    let page = scrape(&daemon);
    check(
        &page,
        &[
            "lastbyte_processes{phase=\"running\"} 0",
            "lastbyte_processes{phase=\"ended\"} 2",
            "lastbyte_starts_total 0",
            "lastbyte_endings_total{status=\"exited\",cause=\"own\"} 0",
        ],
    );
}

#[test]
fn metrics_on_a_port_need_the_token() {
    let (daemon, address) = Daemon::on_a_port();
    let url = format!("{address}/metrics");
    let refused = curl(&daemon, &[&url]);
    assert!(refused.contains("\"unauthorized\"") && refused.ends_with("401\n"), "{refused}");
    let token = daemon.fixture.home.path().join("state/lastbyte/token");
    let token = std::fs::read_to_string(token).unwrap();
    let header = format!("Authorization: Bearer {}", token.trim());
    let page = curl(&daemon, &["-H", &header, &url]);
    check(&page, &["lastbyte_http_refusals_total{code=\"unauthorized\"} 1", "200"]);
}
