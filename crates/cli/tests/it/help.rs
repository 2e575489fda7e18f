use crate::harness::{Fixture, finish};

#[test]
fn the_help_has_the_exit_codes_and_every_option() {
    let finished = finish(Fixture::new().run(&["--help"]));
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    for text in [
        "Usage: lastbyte run [OPTIONS] 'SHELL TEXT'",
        "  124 ",
        "  125 ",
        "  126 ",
        "  127 ",
        "  128+N ",
        "  2 ",
        "--timeout <TIME>",
        "--idle-timeout <TIME>",
        "--cwd <DIR>",
        "--env <NAME=VALUE>",
        "--unset <NAME>",
        "--summary",
        "--json",
        "--sandbox <KIND>",
        "--writable <DIR>",
        "--protect <DIR>",
        "--network",
    ] {
        assert!(finished.stdout.contains(text), "{text:?} is not in\n{}", finished.stdout);
    }
    assert!(finished.stdout.ends_with('\n'));
}
