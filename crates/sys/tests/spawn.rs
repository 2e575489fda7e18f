//! Spawning real programs with both system calls, clone and clone3.

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use lastbyte_sys::confine::{
    Confinement, FilePlace, Filter, KeptFolder, MetadataChanges, Mounts, Namespaces, Network,
    Readable, RootUser, Ruleset, probe,
};
use lastbyte_sys::own_signals::prepare_for_children;
use lastbyte_sys::registry::Registry;
use lastbyte_sys::resolve::{FileId, resolve};
use lastbyte_sys::spawn::{
    Answers, Failure, Mechanism, Output, OutputEnds, Request, Spawned, Spawners, Stdin, Step,
    open_ends,
};
use lastbyte_sys::{Child, Errno, Signal, Status};
use lastbyte_testkit::SignalSets;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const BOTH: [Mechanism; 2] = [Mechanism::Clone3, Mechanism::Clone];

fn request(argv: &[&str]) -> Request {
    let string = |text: &&str| CString::new(*text).expect("no NUL");
    Request {
        programs: vec![string(&argv[0])],
        argv: argv.iter().map(string).collect(),
        cwd: c"/".into(),
        ..Request::default()
    }
}

fn wait_for(fd: impl AsFd, flags: PollFlags) {
    poll(&mut [PollFd::new(&fd, flags)], None).expect("poll");
}

/// A child, and our ends of its output.
#[derive(Debug)]
struct Running {
    child: Child,
    output: OutputEnds,
}

fn spawn(request: Request, mechanism: Mechanism) -> Result<Running, Failure> {
    let (spawners, answers) = Spawners::start(1, mechanism, None).expect("threads");
    let output = submit(&spawners, request);
    receive(&answers).map(|child| Running { child, output })
}

fn submit(spawners: &Spawners, request: Request) -> OutputEnds {
    let (ours, childs) = open_ends(request.stdin, request.output).expect("there is room");
    spawners.submit(7, request, &childs).expect("a spawner lives");
    ours.output
}

fn receive(answers: &Answers) -> Result<Child, Failure> {
    wait_for(answers, PollFlags::IN);
    let answer = answers.receive().expect("socket").expect("a spawner lives");
    assert_eq!(answer.id, 7);
    answer.result.map(|spawned| match spawned {
        Spawned::Held(child) => child,
        Spawned::Unheld(_) | Spawned::Lost => panic!("{spawned:?}"),
    })
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
fn a_child_writes_into_our_pipe_and_its_status_is_kept_for_us() {
    for mechanism in BOTH {
        let request = request(&["/bin/sh", "-c", "echo out; echo err >&2; exit 7"]);
        let spawned = spawn(request, mechanism).expect("sh starts");
        assert_eq!(read_all(merged(spawned.output)), "out\nerr\n");
        wait_for(&spawned.child, PollFlags::IN);
        let seen = spawned.child.peek().expect("ours").expect("it has exited");
        assert_eq!(spawned.child.peek(), Ok(Some(seen)), "peeking takes nothing");
        assert_eq!(seen.status, Status::Exited(7));
        assert!(seen.usage.is_some());
        assert_eq!(spawned.child.reap(), Ok(seen));
    }
}

#[test]
fn a_leader_is_in_its_slot_before_it_runs_and_says_that_it_executes() {
    let (registry, _file) = Registry::create().expect("memory");
    for mechanism in BOTH {
        let slot = registry.enter(1).expect("room");
        let place = slot.place();
        let mut request = request(&["/bin/sh", "-c", "exit 3"]);
        request.place = Some(place);
        let spawned = spawn(request, mechanism).expect("sh starts");
        assert_eq!((place.pid(), place.has_executed()), (Some(spawned.child.pid()), true));
    }
}

#[test]
fn a_leader_that_could_not_execute_leaves_its_slot_as_it_was() {
    let (registry, _file) = Registry::create().expect("memory");
    for mechanism in BOTH {
        let slot = registry.enter(1).expect("room");
        let mut request = request(&["/no/such/program"]);
        request.place = Some(slot.place());
        spawn(request, mechanism).expect_err("there is none");
        assert_eq!((slot.place().pid(), slot.place().has_executed()), (None, false));
    }
}

/// Rust's startup ignores SIGPIPE, so there is something to inherit. In a program that promises to
/// ignore nothing else, children reset only that.
#[test]
fn a_child_starts_with_default_signals() {
    let signal_sets = |mechanism| {
        let spawned = spawn(request(&["/bin/cat", "/proc/self/status"]), mechanism);
        SignalSets::from_status(&read_all(merged(spawned.expect("cat starts").output)))
    };
    let own = std::fs::read_to_string("/proc/self/status").expect("procfs");
    assert!(!SignalSets::from_status(&own).ignored.is_empty(), "{own}");
    for mechanism in BOTH {
        assert_eq!(signal_sets(mechanism), SignalSets::default());
    }
    prepare_for_children();
    for mechanism in BOTH {
        assert_eq!(signal_sets(mechanism), SignalSets::default());
    }
}

#[test]
fn split_output_has_a_pipe_for_each_stream() {
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
fn a_failed_start_names_its_step() {
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
fn a_status_that_was_taken_is_still_known_or_reported_as_lost() {
    let spawned = spawn(request(&["/bin/sh", "-c", "exit 9"]), Mechanism::Clone3).expect("sh");
    let pid = rustix::process::Pid::from_raw(spawned.child.pid());
    rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()).expect("taken");
    // Linux 6.15 and later keep it for holders of the pidfd.
    let known = spawned.child.peek().map(|exited| exited.map(|exited| exited.status));
    assert!(matches!(known, Ok(Some(Status::Exited(9))) | Err(lastbyte_sys::Lost)), "{known:?}");
}

#[test]
fn a_child_is_killed_if_nobody_receives_its_answer() {
    let (spawners, answers) = Spawners::start(1, Mechanism::Clone3, None).expect("threads");
    submit(&spawners, request(&["/bin/sleep", "60"]));
    wait_for(&answers, PollFlags::IN);
    drop(answers);
    lastbyte_testkit::eventually("no child is left", || {
        lastbyte_testkit::children_of(std::process::id()).is_empty()
    });
}

#[test]
fn a_child_that_was_reaped_elsewhere_is_not_signalled_by_pid() {
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
        network: Network::Off,
    };
    let (mounts, root, filter) = (None, RootUser::for_own_children(), Arc::clone(filter));
    let confinement = Some(Arc::new(Confinement { mounts, ruleset, cwd: None, filter, root }));
    Request { confinement, ..request(&["/bin/grep", "Seccomp:", "/proc/self/status"]) }
}

#[test]
fn a_confined_child_starts_with_its_filter() {
    let filter = Filter::get(Network::Off, MetadataChanges::Barred);
    for mechanism in BOTH {
        let made = Spawners::start(1, mechanism, Some(Arc::clone(&filter)));
        let (spawners, answers) = made.expect("threads");
        let output = submit(&spawners, confined_by(&filter));
        let _child = receive(&answers).expect("grep starts");
        assert_eq!(read_all(merged(output)), "Seccomp:\t2\n");
    }
}

/// Otherwise a spawner could start a command without its filter.
#[test]
fn a_spawner_starts_only_children_with_its_own_filter() {
    let own = Filter::get(Network::Off, MetadataChanges::Barred);
    let other = Filter::get(Network::On, MetadataChanges::Barred);
    let refused = Some(Failure { step: Step::Filter, errno: Errno::INVAL });
    let check = |filter: Option<&Arc<Filter>>, request: Request| {
        let made = Spawners::start(1, Mechanism::Clone3, filter.cloned());
        let (spawners, answers) = made.expect("threads");
        submit(&spawners, request);
        assert_eq!(receive(&answers).err(), refused);
    };
    check(None, confined_by(&own));
    check(Some(&other), confined_by(&own));
    check(Some(&own), request(&["/bin/true"]));
}

/// Lowers the limit to 64 and takes all descriptors.
fn take_all_descriptors() -> Vec<File> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..limit }).expect("fewer");
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

/// The child's own ends reserve a descriptor for its pidfd while all others are taken.
#[test]
fn a_pidfd_can_take_the_descriptor_of_the_childs_ends() {
    let (spawners, answers) = Spawners::start(1, Mechanism::Clone3, None).expect("threads");
    let (ours, childs) = open_ends(Stdin::Null, Output::Merged).expect("there is room");
    spawners.submit(7, request(&["/bin/sleep", "60"]), &childs).expect("a spawner lives");
    let hog = take_all_descriptors();
    wait_for(&answers, PollFlags::IN);
    let answer = answers.receive().expect("socket").expect("a spawner lives");
    let Ok(Spawned::Unheld(unheld)) = answer.result else { panic!("{answer:?}") };
    let Spawned::Unheld(unheld) = unheld.hold() else { panic!("there is no room") };
    drop(childs);
    let Spawned::Held(child) = unheld.hold() else { panic!("there is room") };
    drop(hog);
    assert_eq!(child.peek(), Ok(None), "it runs");
    drop(ours);
}

#[test]
fn a_child_without_a_pidfd_is_killed() {
    let (spawners, answers) = Spawners::start(1, Mechanism::Clone3, None).expect("threads");
    let (_ours, childs) = open_ends(Stdin::Null, Output::Merged).expect("there is room");
    spawners.submit(7, request(&["/bin/sleep", "60"]), &childs).expect("a spawner lives");
    let hog = take_all_descriptors();
    wait_for(&answers, PollFlags::IN);
    drop(answers.receive().expect("socket").expect("a spawner lives"));
    drop(hog);
    lastbyte_testkit::eventually("no child is left", || {
        lastbyte_testkit::children_of(std::process::id()).is_empty()
    });
}

/// Files are identified by device and inode, and another file with the same path is not touched: it
/// may have been put there between the check and the start.
#[test]
fn a_child_uses_only_the_file_that_was_checked() {
    let folder = tempfile::tempdir().expect("folder");
    let path = CString::new(folder.path().as_os_str().as_bytes()).expect("no NUL");
    let right = FilePlace { path, file: resolve(folder.path()).expect("there").file };
    let wrong = FilePlace { file: FileId::default(), ..right.clone() };
    let root = KeptFolder { from: right.clone(), to: right.clone() };
    let plain = || Mounts {
        namespaces: Namespaces::for_own_user(),
        kept: vec![root.clone()],
        immovable: vec![],
        protected: vec![],
        hidden: vec![],
        empty: right.path.clone(),
    };
    if let Err(failure) = start_with(plain(), Some(right.clone())) {
        assert_eq!(failure.step, Step::Clone, "{failure:?}");
        return lastbyte_testkit::not_run("user namespaces are refused here");
    }
    let stale = |step| Err(Failure { step, errno: Errno::STALE });
    let kept = |from, to| Mounts { kept: vec![KeptFolder { from, to }], ..plain() };
    assert_eq!(start_with(kept(wrong.clone(), right.clone()), None), stale(Step::Kept));
    assert_eq!(start_with(kept(right.clone(), wrong.clone()), None), stale(Step::Kept));
    let immovable = Mounts { immovable: vec![wrong.clone()], ..plain() };
    assert_eq!(start_with(immovable, None), stale(Step::Protected));
    let protected = Mounts { protected: vec![wrong.clone()], ..plain() };
    assert_eq!(start_with(protected, None), stale(Step::Protected));
    let hidden = Mounts { hidden: vec![wrong.clone()], ..plain() };
    assert_eq!(start_with(hidden, None), stale(Step::Hidden));
    assert_eq!(start_with(plain(), Some(wrong)), stale(Step::Cwd));
}

fn start_with(mounts: Mounts, cwd: Option<FilePlace>) -> Result<(), Failure> {
    let ruleset = Ruleset {
        folders: vec![],
        devices: vec![],
        readable: Readable::Everything,
        network: Network::Off,
    };
    let filter = Filter::get(Network::Off, MetadataChanges::Free);
    let confinement =
        Confinement { mounts: Some(mounts), ruleset, cwd, filter, root: RootUser::Disarm };
    probe(Arc::new(confinement), Mechanism::Clone3)
}

/// The command runs only if its child removes the gate before the next server does.
#[test]
fn a_child_runs_only_if_it_removes_its_gate() {
    let folder = tempfile::tempdir().expect("a folder");
    let gate = folder.path().join("gate");
    let gated = || {
        let path = CString::new(gate.to_str().expect("UTF-8")).expect("no NUL");
        Request { gate: Some(path), ..request(&["/bin/true"]) }
    };
    for mechanism in BOTH {
        File::create(&gate).expect("a gate");
        let spawned = spawn(gated(), mechanism).expect("it starts");
        assert!(!gate.exists());
        assert_eq!(spawned.child.reap().expect("ours").status, Status::Exited(0));
        let kept_out = spawn(gated(), mechanism).expect_err("the gate is gone");
        assert_eq!(kept_out, Failure { step: Step::Gate, errno: Errno::NOENT });
    }
}
