use crate::daemon::Home;
use lastbyte_testkit::is_alive;

#[test]
fn a_server_that_was_shut_down_is_gone_with_all_it_ran() {
    let home = Home::new();
    let started =
        home.finish(&["start", "--", lastbyte_testkit::testchild().to_str().unwrap(), "hold"]);
    let pid = started.stderr.split("(pid ").nth(1).unwrap().split(')').next().unwrap();
    home.fixture.anchor.wait_for(1);
    let finished = home.finish(&["shutdown"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    assert!(!is_alive(pid.parse().unwrap()));
    home.fixture.anchor.wait_for_at_most(0);
    assert_eq!(home.finish(&["ps"]).code, Some(125));
}
