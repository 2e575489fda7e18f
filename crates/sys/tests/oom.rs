//! Whom the kernel kills first.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use lastbyte_sys::oom;

fn score(pid: u32) -> i32 {
    std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap().trim().parse().unwrap()
}

#[test]
fn a_session_and_what_it_has_started_are_preferred_to_us() {
    let mut command = Command::new("setsid");
    command.args(["sh", "-c", "sleep 600 & echo $!; exec sleep 600"]).arg0("setsid");
    let mut leader = command.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    // setsid forks when it leads a group, as it does here: so the shell says who it is itself.
    BufReader::new(leader.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let below: u32 = line.trim().parse().unwrap();
    let shell = lastbyte_sys::procfs::read_stat(below.cast_signed()).unwrap().parent;
    let before = oom::own().unwrap();
    oom::prefer(shell, 300).unwrap();
    assert_eq!(score(shell.unsigned_abs()), before + 300);
    assert_eq!(score(below), before + 300, "it was forked before");
    oom::prefer(shell, 100).unwrap();
    assert_eq!(score(shell.unsigned_abs()), before + 300, "none is made lower");
    oom::prefer(below.cast_signed(), 500).unwrap();
    assert_eq!(score(below), before + 300, "it does not lead a session");
    assert_eq!(oom::own().unwrap(), before);
    for pid in [below, shell.unsigned_abs()] {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    leader.wait().unwrap();
}
