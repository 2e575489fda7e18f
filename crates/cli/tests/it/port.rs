use crate::daemon::Daemon;

#[test]
fn a_server_on_a_port_is_asked_with_its_token_or_not_at_all() {
    let (daemon, url) = Daemon::on_a_port();
    let token = daemon.fixture.home.path().join("state/lastbyte/token").display().to_string();
    let id = daemon.result(&["start", "--server", &url, "--token-file", &token, "printf x"]);
    let logs = ["logs", "-f", id.trim(), "--server", &url, "--token-file", &token];
    assert_eq!(daemon.result(&logs), "x");
    let refused = daemon.finish(&["ps", "--server", &url]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(125), ""), "{refused:?}");
    assert!(refused.stderr.contains("token"), "{refused:?}");
}
