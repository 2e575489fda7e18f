//! A daemon inherits nothing from its starter.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;

use lastbyte_sys::Errno;
use lastbyte_sys::spawn::{Daemon, Failure, Step, start_daemon};
use rustix::io::{FdFlags, fcntl_setfd};

fn start(stderr: &File, actions: &str) -> Daemon {
    let argv = lastbyte_testkit::script(actions).into_iter();
    let argv: Vec<CString> = argv.map(|word| CString::new(word.into_vec()).unwrap()).collect();
    start_daemon(argv[0].clone(), argv, vec![c"ONLY=this".into()], stderr).unwrap()
}

fn read(daemon: Daemon) -> String {
    let mut text = String::new();
    File::from(daemon.stdout).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_daemon_has_its_own_session_and_none_of_our_descriptors() {
    let inherited = tempfile::tempfile().unwrap();
    fcntl_setfd(&inherited, FdFlags::empty()).unwrap();
    let daemon = start(&tempfile::tempfile().unwrap(), "report");
    let pid = daemon.pid;
    let report = read(daemon);
    for part in [
        format!(r#""pid":{pid},"#),
        format!(r#""pgid":{pid},"sid":{pid},"not_default":[],"blocked":[],"fds":[0,1,2],"#),
        r#""has_ctty":false,"cwd":"/","#.into(),
        r#""env":["ONLY"]"#.into(),
    ] {
        assert!(report.contains(&part), "{part} is not in {report}");
    }
}

#[test]
fn a_daemon_has_an_empty_stdin_and_writes_errors_to_the_given_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let daemon = start(&File::create(&path).unwrap(), "await-eof then eprint oh then print done");
    assert_eq!(read(daemon), "done");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "oh");
}

#[test]
fn a_daemon_that_cannot_be_executed_is_an_error() {
    let stderr = tempfile::tempfile().unwrap();
    let failure =
        start_daemon(c"/proc/nowhere".into(), vec![c"x".into()], vec![], &stderr).unwrap_err();
    assert_eq!(failure, Failure { step: Step::Program, errno: Errno::NOENT });
}
