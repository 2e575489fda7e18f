use std::io::Read;

use crate::harness::{Fixture, expect, finish, start};

#[test]
fn a_reader_that_goes_away_ends_the_command_silently() {
    let fixture = Fixture::new();
    let mut child = start(fixture.run(&["exec yes"]));
    expect(child.stdout.as_mut().unwrap(), "y\ny\n");
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(141), b"".as_slice()));
}

#[test]
fn a_pipeline_ends_with_its_last_reader() {
    let finished = finish(Fixture::new().shell(r#""$LASTBYTE" run yes | head -1"#));
    assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("y\n", ""));
}

#[test]
fn a_command_that_ignores_broken_pipes_is_killed_when_its_reader_goes() {
    let fixture = Fixture::new();
    let mut child = start(fixture.run_testchild("join then flood"));
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 100]).unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(137));
    fixture.anchor.wait_for_at_most(0);
}

#[test]
fn the_command_survives_a_closed_standard_error() {
    let fixture = Fixture::new();
    let mut command = fixture.run(&["--summary", "--json", "--"]);
    command.arg(lastbyte_testkit::testchild()).arg("hold");
    let mut child = start(command);
    fixture.anchor.wait_for(1);
    drop(child.stderr.take());
    fixture.anchor.tell("write-bytes 100000");
    fixture.anchor.tell("eprint unheard");
    fixture.anchor.tell("print heard");
    child.stdout.as_mut().unwrap().read_exact(&mut vec![0; 100_000]).unwrap();
    expect(child.stdout.as_mut().unwrap(), "heard");
    fixture.anchor.tell("exit 5");
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

/// The kernel signals only a process that writes.
#[test]
fn a_detached_child_survives_a_reader_that_goes_away() {
    let fixture = Fixture::new();
    let script = r#""$LASTBYTE" run -- "$TESTCHILD" setsid-background close-stdout then \
        close-stderr then hold end then flood | head -c 10 >/dev/null"#;
    finish(fixture.shell(script));
    assert_eq!(fixture.anchor.wait_for(1).len(), 1);
}
