//! The hint of an error can be typed as it stands.

use crate::daemon::Daemon;

#[test]
fn hints_name_commands_and_options() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "hold");
    daemon.fixture.anchor.wait_for(1);
    let forget = format!("; `lastbyte forget --stop {}` stops it first\n", &id[28..]);
    for (arguments, advice) in [
        (
            vec!["write", &id, "--line", "x"],
            "; start it again with `lastbyte start --stdin-open`\n",
        ),
        (vec!["forget", &id], &forget),
        (
            vec!["start", "--cwd", "/no/such", "true"],
            "; --cwd needs a directory that you can enter\n",
        ),
        (vec!["show", "no-such"], "; `lastbyte ps` lists processes\n"),
    ] {
        let refused = daemon.finish(&arguments);
        assert_eq!(refused.code, Some(125), "{refused:?}");
        assert!(refused.stderr.ends_with(advice), "{refused:?}");
    }
    daemon.result(&["forget", "--stop", &id]);
}
