//! Spawning real programs, by both system calls that can make a process.

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use lastbyte_sys::confine::{Confinement, Filter, Readable, Root, Ruleset, Traffic, Upkeep};
use lastbyte_sys::spawn::{
    Answers, Failure, Mechanism, Output, OutputEnds, Request, Spawned, Spawners, Stdin, Step,
};
use lastbyte_sys::{Errno, Signal, Status};
use rustix::event::{PollFd, PollFlags, poll};

const BOTH: [Mechanism; 2] = [Mechanism::Clone3, Mechanism::Clone];

fn request(argv: &[&str]) -> Request {
    let string = |text: &&str| CString::new(*text).expect("no NUL");
    Request {
        programs: vec![string(&argv[0])],
        argv: argv.iter().map(string).collect(),
        env: vec![],
        cwd: c"/".into(),
        stdin: Stdin::Null,
        output: Output::Merged,
        leaf: None,
        confinement: None,
    }
}

fn wait_for(fd: impl AsFd, flags: PollFlags) {
    poll(&mut [PollFd::new(&fd, flags)], None).expect("poll");
}

fn spawn(request: Request, mechanism: Mechanism) -> Result<Spawned, Failure> {
    let (spawners, answers) = Spawners::start(1, mechanism, None).expect("threads");
    assert!(spawners.submit(7, request));
    receive(&answers)
}

fn receive(answers: &Answers) -> Result<Spawned, Failure> {
    wait_for(answers, PollFlags::IN);
    let answer = answers.receive().expect("socket").expect("a spawner lives");
    assert_eq!(answer.id, 7);
    answer.result
}

fn read_all(end: OwnedFd) -> String {
    let mut end = File::from(end);
    let mut text = String::new();
    loop {
        wait_for(&end, PollFlags::IN);
        let mut chunk = [0; 4096];
        match end.read(&mut chunk).expect("read") {
            0 => return text,
            n => text.push_str(std::str::from_utf8(&chunk[..n]).expect("UTF-8")),
        }
    }
}

fn merged(output: OutputEnds) -> OwnedFd {
    match output {
        OutputEnds::Merged(end) => end,
        OutputEnds::Split { .. } | OutputEnds::Pty { .. } => panic!("asked for one pipe"),
    }
}

#[test]
fn a_child_writes_into_our_pipe_and_its_status_waits_for_us() {
    for mechanism in BOTH {
        let request = request(&["/bin/sh", "-c", "echo out; echo err >&2; exit 7"]);
        let spawned = spawn(request, mechanism).expect("sh starts");
        assert_eq!(read_all(merged(spawned.output)), "out\nerr\n");
        wait_for(&spawned.child, PollFlags::IN);
        assert_eq!(spawned.child.peek(), Ok(Some(Status::Exited(7))));
        assert_eq!(spawned.child.peek(), Ok(Some(Status::Exited(7))), "peeking takes nothing");
        let reaped = spawned.child.reap().expect("ours to reap");
        assert_eq!(reaped.status, Status::Exited(7));
        assert!(reaped.usage.is_some());
    }
}

#[test]
fn split_output_keeps_the_streams_apart() {
    let mut request = request(&["/bin/sh", "-c", "echo out; echo err >&2"]);
    request.output = Output::Split;
    let spawned = spawn(request, Mechanism::Clone3).expect("sh starts");
    let OutputEnds::Split { stdout, stderr } = spawned.output else { panic!("asked for two") };
    assert_eq!((read_all(stdout), read_all(stderr)), ("out\n".into(), "err\n".into()));
}

#[test]
fn a_killed_child_names_its_signal() {
    let spawned = spawn(request(&["/bin/sleep", "60"]), Mechanism::Clone3).expect("sleep starts");
    assert_eq!(spawned.child.peek(), Ok(None));
    assert!(spawned.child.signal_group(Signal::TERM));
    let reaped = spawned.child.reap().expect("ours");
    assert_eq!(reaped.status, Status::Signalled { signal: Signal::TERM, core_dumped: false });
}

#[test]
fn what_cannot_start_names_its_step() {
    for mechanism in BOTH {
        let missing = spawn(request(&["/no/such/program"]), mechanism).expect_err("missing");
        assert_eq!(missing, Failure { step: Step::Program, errno: Errno::NOENT });
        let mut request = request(&["/bin/true"]);
        request.cwd = c"/no/such/folder".into();
        let lost = spawn(request, mechanism).expect_err("no such folder");
        assert_eq!(lost, Failure { step: Step::Cwd, errno: Errno::NOENT });
    }
}

#[test]
fn the_path_is_searched_as_execvp_does() {
    let mut request = request(&["true"]);
    request.programs = vec![c"/no/true".into(), c"/dev/null/true".into(), c"/bin/true".into()];
    let spawned = spawn(request.clone(), Mechanism::Clone3).expect("found in the third place");
    assert_eq!(spawned.child.reap().expect("ours").status, Status::Exited(0));
    request.programs = vec![c"/etc/passwd".into(), c"/no/true".into()];
    let refused = spawn(request, Mechanism::Clone3).expect_err("not executable");
    assert_eq!(refused, Failure { step: Step::Program, errno: Errno::ACCESS });
}

#[test]
fn a_dropped_child_is_killed_and_leaves_no_zombie() {
    let spawned = spawn(request(&["/bin/sleep", "60"]), Mechanism::Clone3).expect("sleep starts");
    let pid = spawned.child.pid();
    drop(spawned);
    lastbyte_testkit::eventually("the child is reaped", || {
        lastbyte_sys::procfs::read_stat(pid).is_err()
    });
}

#[test]
fn a_status_that_somebody_else_took_is_still_known_or_said_to_be_lost() {
    let spawned = spawn(request(&["/bin/sh", "-c", "exit 9"]), Mechanism::Clone3).expect("sh");
    let pid = rustix::process::Pid::from_raw(spawned.child.pid());
    rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()).expect("taken");
    // Linux 6.15 and later remember it for whoever holds the pidfd.
    let known = spawned.child.peek();
    assert!(matches!(known, Ok(Some(Status::Exited(9))) | Err(lastbyte_sys::Lost)), "{known:?}");
}

#[test]
fn a_child_whose_answer_nobody_takes_is_killed() {
    let (spawners, answers) = Spawners::start(1, Mechanism::Clone3, None).expect("threads");
    assert!(spawners.submit(7, request(&["/bin/sleep", "60"])));
    wait_for(&answers, PollFlags::IN);
    drop(answers);
    lastbyte_testkit::eventually("no child is left", || {
        lastbyte_testkit::children_of(std::process::id()).is_empty()
    });
}

#[test]
fn a_child_that_somebody_else_reaped_is_not_signalled_by_its_number() {
    let spawned = spawn(request(&["/bin/true"]), Mechanism::Clone3).expect("it starts");
    wait_for(&spawned.child, PollFlags::IN);
    assert!(spawned.child.signal_group(Signal::TERM), "the zombie is ours, and so is the number");
    let pid = rustix::process::Pid::from_raw(spawned.child.pid());
    rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()).expect("taken");
    assert!(!spawned.child.signal_group(Signal::TERM), "the number may be anybody's");
}

fn confined_by(filter: &Arc<Filter>) -> Request {
    let ruleset = Ruleset {
        folders: vec![],
        devices: vec![],
        readable: Readable::Everything,
        traffic: Traffic::Barred,
    };
    let (mounts, root, filter) = (None, Root::of_own_children(), Arc::clone(filter));
    let confinement = Some(Arc::new(Confinement { mounts, ruleset, filter, root }));
    Request { confinement, ..request(&["/bin/grep", "Seccomp:", "/proc/self/status"]) }
}

#[test]
fn a_confined_child_is_born_with_its_filter() {
    let filter = Filter::of(Traffic::Barred, Upkeep::Barred);
    for mechanism in BOTH {
        let made = Spawners::start(1, mechanism, Some(Arc::clone(&filter)));
        let (spawners, answers) = made.expect("threads");
        assert!(spawners.submit(7, confined_by(&filter)));
        let spawned = receive(&answers).expect("grep starts");
        assert_eq!(read_all(merged(spawned.output)), "Seccomp:\t2\n");
    }
}

/// A spawner that took whatever comes would start a command without its filter.
#[test]
fn a_spawner_makes_only_children_that_want_its_own_filter() {
    let own = Filter::of(Traffic::Barred, Upkeep::Barred);
    let other = Filter::of(Traffic::Free, Upkeep::Barred);
    let refused = Some(Failure { step: Step::Filter, errno: Errno::INVAL });
    let check = |filter: Option<&Arc<Filter>>, request: Request| {
        let made = Spawners::start(1, Mechanism::Clone3, filter.cloned());
        let (spawners, answers) = made.expect("threads");
        assert!(spawners.submit(7, request));
        assert_eq!(receive(&answers).err(), refused);
    };
    check(None, confined_by(&own));
    check(Some(&other), confined_by(&own));
    check(Some(&own), request(&["/bin/true"]));
}
