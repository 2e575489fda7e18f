use crate::bare_daemon::{Daemon, serve};
use crate::daemon;
use crate::harness::{Fixture, finish};

#[test]
fn a_server_on_a_port_needs_its_token() {
    let (daemon, url) = daemon::Daemon::on_a_port();
    let token = daemon.fixture.home.path().join("state/lastbyte/token").display().to_string();
    let id = daemon.result(&["start", "--server", &url, "--token-file", &token, "printf x"]);
    let logs = ["logs", "-f", id.trim(), "--server", &url, "--token-file", &token];
    assert_eq!(daemon.result(&logs), "x");
    let refused = daemon.finish(&["ps", "--server", &url]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(125), ""), "{refused:?}");
    assert!(refused.stderr.contains("; pass the token with --token-file"), "{refused:?}");
}

#[test]
fn localhost_tries_all_of_its_addresses() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let fixture = Fixture::new();
        let mut daemon = Daemon::start(serve(&fixture, &["--no-auth", "--listen", address]));
        daemon.address();
        let url = daemon.address();
        let port = url.rsplit(':').next().unwrap();
        let url = format!("http://localhost:{port}");
        let listed = finish(fixture.lastbyte(&["ps", "--server", &url]));
        assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{address}");
    }
}
