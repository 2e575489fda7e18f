//! Kills of real keepers, workers and stand-ins. This program is all of them: a test starts it as a
//! keeper, which starts it as a worker.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::exit, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "what is tested starts children itself")]

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use lastbyte_keeper::{End, Health, Joined, Keeper, Notice, Setup};
use lastbyte_sys::registry::{Entered, Inherited, Leader, Purpose, Slot};
use lastbyte_sys::spawn::{
    Mechanism, Output, OutputEnds, Request, Spawned, Spawners, Stdin, open_ends,
};
use lastbyte_sys::worker::Program;
use lastbyte_sys::{Errno, Signal, Status, cgroup};
use lastbyte_testkit::{children_of, eventually, has_cgroups, is_alive};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, kill_process, prlimit};

fn main() {
    let joined = Joined::join_if_worker().unwrap();
    let arguments: Vec<String> = std::env::args().collect();
    match (joined, &arguments[1..]) {
        (Some(joined), [_, scenario, folder]) => work(&joined, scenario, Path::new(folder)),
        (None, [keep, _, folder]) if keep == "keep" => keep_in(Path::new(folder)),
        (None, arguments) => run_tests(arguments),
        (Some(_), _) => std::process::exit(2),
    }
}

// The keeper.

fn keep_in(folder: &Path) {
    let keeper = Keeper::new().unwrap();
    let listener = UnixListener::bind(folder.join("socket")).unwrap();
    let program = Program {
        path: "/proc/self/exe".into(),
        argv: std::env::args_os().collect(),
        env: std::env::vars_os().collect(),
    };
    let lock = File::create(folder.join("lock")).unwrap().into();
    let setup = Setup { program, listeners: vec![(7, listener.into())], lock };
    // Opened before there may be no descriptors.
    let mut notices = File::create(folder.join("notices")).unwrap();
    let end = keeper.keep(setup, |notice| note(&mut notices, notice)).unwrap();
    std::process::exit(match end {
        End::Left(Status::Exited(code)) => code,
        End::Left(Status::Signalled { signal, .. }) => 128 + signal.number(),
        End::GaveUp => 99,
    });
}

fn note(notices: &mut File, notice: Notice) {
    let line = match notice {
        Notice::Pause { deaths, pause } => format!("pause {deaths} {}", pause.as_millis()),
        Notice::NotStarted { errno, .. } => format!("not started: {errno:?}"),
        Notice::Died(death) => format!("died {:?}", death.status),
        other => format!("{other:?}"),
    };
    writeln!(notices, "{line}").unwrap();
}

// The worker.

fn work(joined: &Joined, scenario: &str, folder: &Path) {
    say(folder, &format!("pid-{}", joined.generation), std::process::id());
    match scenario {
        "crash" if !folder.join("recover").exists() => std::process::exit(9),
        "crash" => {}
        "half" if joined.generation == 2 => {
            // Everything is fetched and entered, and the old stand-in is gone.
            let _taken = take_over(joined);
            say(folder, "taken", 2);
            wait_to_be_killed();
        }
        "torture" if !folder.join("go").exists() && joined.generation > 1 => {
            let _taken = take_over(joined);
            joined.ready().unwrap();
            wait_to_be_killed();
        }
        "unborn" if joined.generation > 1 => {
            let [(slot, _)] = &take_over(joined)[..] else { panic!("one process") };
            let place = slot.place();
            eventually("its exit is known", || place.exit().is_some());
            let exit = place.exit().unwrap();
            say(folder, "results", format!("{:?} {}", exit.status, exit.executed));
            place.release();
        }
        _ if joined.generation > 1 => finish_all(joined, folder),
        _ => {}
    }
    let is_first = joined.generation == 1;
    let _unborn = (is_first && scenario == "unborn").then(|| {
        start_frozen(joined, Path::new(&fs::read_to_string(folder.join("cgroup")).unwrap()))
    });
    let _started =
        (is_first && scenario != "unborn").then(|| start_commands(joined, scenario, folder));
    joined.ready().unwrap();
    say(folder, &format!("ready-{}", joined.generation), std::process::id());
    loop {
        match joined.beat().unwrap() {
            Health::Good => {}
            Health::NewStandIn => say(folder, "new-stand-in", 1),
            Health::KeeperGone => say(folder, "keeper-gone", 1),
        }
        if let Ok(code) = fs::read_to_string(folder.join("leave")) {
            let code: u8 = code.trim().parse().unwrap();
            joined.leaving(code);
            std::process::exit(code.into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn wait_to_be_killed() -> ! {
    loop {
        std::thread::park();
    }
}

fn say(folder: &Path, name: &str, what: impl ToString) {
    let unnamed = folder.join(format!("{name}.new"));
    fs::write(&unnamed, what.to_string()).unwrap();
    fs::rename(unnamed, folder.join(name)).unwrap();
}

/// What this worker has taken over of a command.
type TakenOver = (std::sync::Arc<Slot>, Vec<Entered>);

/// What this worker has of a command until it dies.
type Started = (std::sync::Arc<Slot>, Entered, lastbyte_sys::Child);

fn start_commands(joined: &Joined, scenario: &str, folder: &Path) -> Vec<Started> {
    // The folder goes with the test, whatever came of it.
    let go = format!("while [ -e {0} ] && [ ! -e {0}/go ]; do sleep 0.01; done", folder.display());
    let script = |number: usize| match scenario {
        "orphan" => format!(
            "(sh -c 'echo $$ > {0}/o; mv {0}/o {0}/orphan; sleep 0.2' &) &",
            folder.display()
        ),
        "crash" | "leave" => "exit 0".into(),
        _ => format!("echo first {number}; {go}; echo last {number}; exit {}", 7 + number),
    };
    let mechanism = if scenario == "clone" { Mechanism::Clone } else { Mechanism::Clone3 };
    let start = |number| start_command(joined, mechanism, &script(number), number as u128 + 1);
    (0..3).map(start).collect()
}

fn start_command(joined: &Joined, mechanism: Mechanism, script: &str, id: u128) -> Started {
    let (spawners, answers) = Spawners::start(1, mechanism, None).unwrap();
    let slot = joined.registry.enter(id).unwrap();
    let (ours, childs) = open_ends(Stdin::Null, Output::Merged).unwrap();
    let OutputEnds::Merged(output) = ours.output else { panic!("{ours:?}") };
    let entered = Entered::new(output, Some(&slot), Purpose::Output);
    let word = |text: &str| CString::new(text).unwrap();
    let request = Request {
        programs: vec![word("/bin/sh")],
        argv: vec![word("sh"), word("-c"), word(script)],
        env: vec![word("PATH=/usr/bin:/bin")],
        cwd: c"/".into(),
        place: Some(slot.place()),
        ..Request::default()
    };
    spawners.submit(1, request, &childs).unwrap();
    let answer = loop {
        match answers.receive() {
            Ok(answer) => break answer.unwrap(),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let Ok(Spawned::Held(child)) = answer.result else { panic!("{answer:?}") };
    assert_eq!(slot.place().pid(), Some(child.pid()));
    (slot, entered, child)
}

/// A leader that was cloned and does not come to its program, because its cgroup is frozen.
fn start_frozen(joined: &Joined, cgroup: &Path) -> std::sync::Arc<Slot> {
    let (spawners, _answers) = Spawners::start(1, Mechanism::Clone3, None).unwrap();
    let slot = joined.registry.enter(1).unwrap();
    let (_ours, childs) = open_ends(Stdin::Null, Output::Merged).unwrap();
    let request = Request {
        programs: vec![c"/bin/true".into()],
        argv: vec![c"true".into()],
        cwd: c"/".into(),
        cgroup: Some(CString::new(cgroup.to_str().unwrap()).unwrap()),
        place: Some(slot.place()),
        ..Request::default()
    };
    spawners.submit(1, request, &childs).unwrap();
    eventually("it is born", || slot.place().pid().is_some());
    slot
}

/// Takes over everything, reads it to its end, and says what it was.
fn finish_all(joined: &Joined, folder: &Path) {
    let inherited = take_over(joined);
    let kinds: Vec<u8> = joined.take_listeners().iter().map(|(kind, _)| *kind).collect();
    say(folder, "listeners", format!("{kinds:?}"));
    let mut results: Vec<String> = inherited.into_iter().map(finish).collect();
    results.sort();
    say(folder, "results", results.join("\n"));
}

fn take_over(joined: &Joined) -> Vec<TakenOver> {
    let inherited = joined.copy_descriptors().unwrap();
    let taken_over = inherited.into_iter().map(|Inherited { place, descriptors, lost }| {
        assert!(!lost);
        let slot = joined.registry.take_over(place);
        let enter = |(purpose, copy)| Entered::new(copy, Some(&slot), purpose);
        let entered: Vec<Entered> = descriptors.into_iter().map(enter).collect();
        entered.iter().for_each(Entered::enter);
        slot.own();
        (slot, entered)
    });
    let taken_over = taken_over.collect();
    joined.has_taken_over();
    taken_over
}

fn finish((slot, entered): TakenOver) -> String {
    let place = slot.place();
    let mut text = String::new();
    for descriptor in entered {
        rustix::fs::fcntl_setfl(&descriptor, rustix::fs::OFlags::empty()).unwrap();
        let copy = descriptor.as_fd().try_clone_to_owned().unwrap();
        File::from(copy).read_to_string(&mut text).unwrap();
    }
    eventually("the keeper tells its exit", || place.exit().is_some());
    let exit = place.exit().unwrap();
    assert!(exit.executed);
    let pid = place.pid().unwrap();
    place.release();
    eventually("the keeper reaps it", || place.leader() == Leader::Reaped);
    eventually("it is no zombie", || !Path::new(&format!("/proc/{pid}")).exists());
    let result = format!("{} {text:?} {:?}", place.id(), exit.status);
    drop(slot);
    result
}

// The tests.

const TESTS: [(&str, fn()); 11] = [
    ("the_next_worker_has_output_and_status_of_a_killed_one", killed),
    ("a_kill_during_a_take_over_loses_nothing", killed_during_a_take_over),
    ("any_number_of_kills_loses_nothing", killed_often),
    ("a_leader_that_is_killed_before_its_program_never_ran", killed_unborn),
    ("a_stand_in_that_is_killed_is_replaced", stand_in_killed),
    ("a_worker_outlives_its_keeper", keeper_killed),
    ("a_keeper_without_descriptors_keeps_what_it_has", keeper_without_descriptors),
    ("a_crash_loop_is_slowed_down", crash_loop),
    ("leaving_on_purpose_ends_the_keeper_with_that_code", leaving),
    ("orphans_are_reaped", orphans),
    ("a_connection_waits_for_the_next_worker", listening),
];

fn run_tests(arguments: &[String]) {
    let named =
        arguments.iter().find(|argument| !argument.starts_with('-') && *argument != "terse");
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    for (name, test) in TESTS {
        if named.is_some_and(|named| !name.contains(named.as_str())) || has("--ignored") {
            continue;
        }
        if has("--list") {
            println!("{name}: test");
            continue;
        }
        test();
        println!("test {name} ... ok");
    }
}

/// A keeper in a folder of its own; everything is killed when it is dropped.
struct Kept {
    folder: PathBuf,
    keeper: Child,
}

impl Kept {
    fn start(scenario: &str) -> Self {
        Self::start_with(scenario, &[])
    }

    /// With these files in its folder.
    fn start_with(scenario: &str, files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("keeper-{}-{scenario}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        files.iter().for_each(|(name, text)| say(&folder, name, text));
        let mut command = Command::new("/proc/self/exe");
        let keeper = command.args(["keep", scenario]).arg(&folder).spawn().unwrap();
        Self { folder, keeper }
    }

    fn file(&self, name: &str) -> String {
        eventually(name, || self.folder.join(name).exists());
        fs::read_to_string(self.folder.join(name)).unwrap()
    }

    fn kill_worker(&self, generation: u32) {
        kill(self.file(&format!("pid-{generation}")).parse().unwrap());
    }

    fn tell(&self, name: &str, what: &str) {
        say(&self.folder, name, what);
    }

    fn others(&self, name: &str) -> Vec<u32> {
        let is_named = |pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|found| found.trim() == name)
        };
        children_of(self.keeper.id()).into_iter().filter(is_named).collect()
    }

    /// The worker leaves, and nothing is left.
    #[track_caller]
    fn leave(&mut self, code: u8) {
        let others = children_of(self.keeper.id());
        self.tell("leave", &code.to_string());
        assert_eq!(self.keeper.wait().unwrap().code(), Some(code.into()));
        for pid in others {
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} is left");
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let others = children_of(self.keeper.id());
        if self.keeper.try_wait().unwrap().is_none() {
            _ = self.keeper.kill();
            _ = self.keeper.wait();
            others.into_iter().for_each(kill);
        }
        self.tell("go", "");
        _ = fs::remove_dir_all(&self.folder);
    }
}

fn kill(pid: u32) {
    // It may be gone.
    _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), rustix::process::Signal::KILL);
}

const RESULTS: &str = "1 \"first 0\\nlast 0\\n\" Exited(7)\n\
                       2 \"first 1\\nlast 1\\n\" Exited(8)\n\
                       3 \"first 2\\nlast 2\\n\" Exited(9)";

fn killed() {
    for scenario in ["pipe", "clone"] {
        killed_once(scenario);
    }
}

fn killed_once(scenario: &str) {
    let mut kept = Kept::start(scenario);
    kept.file("ready-1");
    kept.kill_worker(1);
    kept.file("pid-2");
    kept.tell("go", "");
    assert_eq!(kept.file("results"), RESULTS);
    assert_eq!(kept.file("listeners"), "[7]");
    kept.file("ready-2");
    eventually("only worker and stand-in are left", || children_of(kept.keeper.id()).len() == 2);
    let notices = kept.file("notices");
    let died = Status::Signalled { signal: Signal::KILL, core_dumped: false };
    assert!(notices.contains(&format!("died {died:?}")), "{notices}");
    kept.leave(0);
}

fn killed_during_a_take_over() {
    let mut kept = Kept::start("half");
    kept.file("ready-1");
    kept.kill_worker(1);
    kept.file("taken");
    kept.kill_worker(2);
    kept.tell("go", "");
    assert_eq!(kept.file("results"), RESULTS);
    kept.file("ready-3");
    kept.leave(0);
}

/// At moments that differ, also before a worker has joined or fetched anything.
fn killed_often() {
    let mut kept = Kept::start("torture");
    kept.file("ready-1");
    kept.kill_worker(1);
    let mut known = Vec::new();
    for round in 0..9u32 {
        let mut next = None;
        eventually("the next worker is there", || {
            let workers = [kept.others("exe"), kept.others("lastbyte")].concat();
            next = workers.into_iter().find(|pid| !known.contains(pid) && is_alive(*pid));
            next.is_some()
        });
        let since = Instant::now();
        while since.elapsed() < Duration::from_micros(u64::from(round) * 300) {}
        known.extend(next);
        next.into_iter().for_each(kill);
    }
    kept.tell("go", "");
    assert_eq!(kept.file("results"), RESULTS);
    eventually("only worker and stand-in are left", || children_of(kept.keeper.id()).len() == 2);
    kept.leave(0);
}

/// As when memory runs out: whatever shares the worker's memory is killed with it.
fn killed_unborn() {
    if !has_cgroups("a leader that is frozen before its program") {
        return;
    }
    let Frozen(cgroup) = &Frozen::new();
    let mut kept = Kept::start_with("unborn", &[("cgroup", cgroup.to_str().unwrap())]);
    kept.file("ready-1");
    let leaders = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap();
    let leader: u32 = leaders.trim().parse().unwrap();
    // Not the leader first: a worker that lives sees that it never ran.
    kept.kill_worker(1);
    kill(leader);
    let killed = Status::Signalled { signal: Signal::KILL, core_dumped: false };
    assert_eq!(kept.file("results"), format!("{killed:?} false"));
    eventually("only worker and stand-in are left", || children_of(kept.keeper.id()).len() == 2);
    kept.leave(0);
}

/// A cgroup whose members do not run; removed when dropped.
struct Frozen(PathBuf);

impl Frozen {
    fn new() -> Self {
        let folder = cgroup::probe().unwrap().join(format!("keeper-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("cgroup.freeze"), "1").unwrap();
        Self(folder)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        _ = fs::remove_dir(&self.0);
    }
}

fn stand_in_killed() {
    let mut kept = Kept::start("stand-in");
    kept.file("ready-1");
    let [first] = kept.others("lastbyte-stand")[..] else { panic!("one stand-in") };
    kill(first);
    kept.file("new-stand-in");
    eventually("the first is reaped", || {
        kept.others("lastbyte-stand").len() == 1 && kept.others("lastbyte-stand") != [first]
    });
    kept.kill_worker(1);
    kept.tell("go", "");
    assert_eq!(kept.file("results"), RESULTS);
    kept.file("ready-2");
    kept.leave(0);
}

fn keeper_killed() {
    let mut kept = Kept::start("keeper");
    let worker: u32 = kept.file("ready-1").parse().unwrap();
    let [stand_in] = kept.others("lastbyte-stand")[..] else { panic!("one stand-in") };
    kill(kept.keeper.id());
    kept.keeper.wait().unwrap();
    kept.file("keeper-gone");
    eventually("a stand-in without a keeper goes", || !is_alive(stand_in));
    assert!(is_alive(worker));
    kept.tell("go", "");
    kept.tell("leave", "0");
    eventually("the worker leaves", || !is_alive(worker));
}

/// Neither a descriptor nor even a look at those that are open: a poll of more than the limit fails.
fn keeper_without_descriptors() {
    let mut kept = Kept::start("pipe");
    kept.file("ready-1");
    let keeper = Pid::from_raw(kept.keeper.id().cast_signed());
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit =
        |current| prlimit(keeper, Resource::Nofile, Rlimit { current, maximum }).unwrap().current;
    let before = limit(Some(0));
    kept.kill_worker(1);
    let not_started = format!("not started: {:?}", Errno::MFILE);
    eventually("it has tried twice", || kept.file("notices").matches(&not_started).count() > 1);
    kept.tell("go", "");
    let commands = kept.others("sh").into_iter();
    eventually("the commands have exited", || commands.clone().all(|pid| !is_alive(pid)));
    assert!(!kept.folder.join("pid-2").exists());
    limit(before);
    assert_eq!(kept.file("results"), RESULTS);
    kept.leave(0);
}

fn crash_loop() {
    let mut kept = Kept::start("crash");
    kept.file("pid-8");
    kept.tell("recover", "");
    eventually("one is ready", || kept.file("notices").contains("Ready { first: true }"));
    let notices = kept.file("notices");
    let pauses: Vec<&str> = notices.lines().filter(|line| line.starts_with("pause")).collect();
    assert_eq!(pauses[..3], ["pause 5 100", "pause 6 200", "pause 7 400"], "{notices}");
    kept.leave(0);
}

fn leaving() {
    let mut kept = Kept::start("leave");
    kept.file("ready-1");
    kept.leave(42);
}

fn orphans() {
    let mut kept = Kept::start("orphan");
    let mut orphan = None;
    eventually("the orphan has written its number", || {
        orphan = kept.file("orphan").trim().parse::<u32>().ok();
        orphan.is_some()
    });
    let status = format!("/proc/{}", orphan.unwrap());
    eventually("the orphan is reaped", || !Path::new(&status).exists());
    // The other commands leave one as well.
    eventually("only worker and stand-in are left", || children_of(kept.keeper.id()).len() == 2);
    kept.leave(0);
}

fn listening() {
    let mut kept = Kept::start("listen");
    kept.file("ready-1");
    kept.kill_worker(1);
    // Whether a worker lives or not, it is not refused.
    for _ in 0..100 {
        UnixStream::connect(kept.folder.join("socket")).unwrap();
    }
    kept.tell("go", "");
    kept.file("ready-2");
    kept.leave(0);
    assert!(UnixStream::connect(kept.folder.join("socket")).is_err());
}
