//! Processes that drop the marks of their tree, in a program that adopts orphans: each is stopped
//! with its tree or reported, and none outlives a close.

use std::time::Duration;

use lastbyte_engine::{
    Launch, OrphanReaper, Process, Reach, ReachChoice, Settings, Signal, StopPolicy, Survivors,
    Verb,
};
use lastbyte_sys::{cgroup, procfs};
use lastbyte_testkit::{eventually, inside, is_alive, not_run, testchild};

use crate::fixture::{Fixture, HOUR, finish, patiently};
use crate::unprivileged::{as_nobody, as_nobody_in};

const STOP: StopPolicy = StopPolicy { signal: Signal::TERM, grace: Duration::from_secs(5) };
/// In its own session, with no environment but the anchor; its parent is gone.
const DETACHED: &str = "(setsid env -i $ANCHOR $CHILD hold >/dev/null 2>&1 </dev/null &)";
/// The same with two forks, as daemons do.
const DAEMON: &str = "(setsid sh -c '(env -i $ANCHOR $CHILD hold >/dev/null 2>&1 </dev/null &)' &)";
/// The same without the tag, which is a limit that every user can lower.
const UNMARKED: &str =
    "(prlimit --locks=5:5 setsid env -i $ANCHOR $CHILD hold >/dev/null 2>&1 </dev/null &)";

struct Adopting {
    fixture: Fixture,
    _reaper: OrphanReaper,
}

impl Adopting {
    fn by(reach: Reach) -> Self {
        Self::with(|settings| settings.reach = ReachChoice::Only(reach))
    }

    fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self { fixture: Fixture::with(change), _reaper: OrphanReaper::start().unwrap() }
    }

    /// Runs a script in which `$CHILD` is our helper and `$ANCHOR` the variable that it needs.
    async fn run(&self, script: &str) -> Process {
        let (name, value) = self.fixture.anchor.env();
        let anchor = format!("{name}={}", value.to_str().unwrap());
        let script = script.replace("$CHILD", testchild().to_str().unwrap());
        let launch = Launch { stop: STOP, ..Launch::shell(script.replace("$ANCHOR", &anchor)) };
        self.fixture.start_launch(launch).await
    }

    fn wait_for(&self, count: usize) -> Vec<u32> {
        self.fixture.anchor.wait_for(count)
    }

    fn wait_for_nobody(&self) {
        self.fixture.anchor.wait_for_at_most(0);
    }
}

/// With cgroups only if this user can create them.
fn reaches() -> Vec<Reach> {
    if rustix::process::geteuid().is_root() {
        vec![Reach::Cgroup, Reach::Scan]
    } else {
        vec![Reach::Scan]
    }
}

fn one(pids: &[u32]) -> i32 {
    let [pid] = pids[..] else { panic!("one is there: {pids:?}") };
    pid.cast_signed()
}

async fn check_detached_trees() {
    for reach in reaches() {
        for escape in [DETACHED, DAEMON] {
            let program = Adopting::by(reach);
            // A second tree, so that orphans are not attributed just because there is only one.
            let other = program.run("exec sleep 60").await;
            let process = program.run(&format!("{escape}; exec sleep 60")).await;
            let escaped = one(&program.wait_for(1));
            let proof = patiently("stop", process.stop(Verb::Stop)).await;
            assert!(proof.gone.contains(&escaped), "{reach:?} {escape}: {proof:?}");
            assert_eq!((&proof.left, &proof.unattributed), (&vec![], &vec![]));
            assert_eq!((proof.reach, proof.proved), (reach, reach == Reach::Cgroup));
            program.wait_for_nobody();
            assert!(is_alive(other.pid().unsigned_abs()), "the other was not touched");
            patiently("stop", other.stop(Verb::Stop)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_without_environment_and_streams_is_stopped_with_its_tree() {
    check_detached_trees().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_of_an_ordinary_user_is_stopped_with_its_tree() {
    if as_nobody("escapes::a_daemon_of_an_ordinary_user_is_stopped_with_its_tree") {
        check_detached_trees().await;
    }
}

/// Copies the limits and the cookie of another process as far as an ordinary user can, then leaves a
/// daemon.
const IMPOSTOR: &str = "for limit in 'locks file.locks' 'rss resident.set'; do set -- $limit
  value=$(awk \"/$2/ {print \\$5}\" /proc/$OTHER/limits)
  prlimit --pid $$ --$1=$value:$value 2>/dev/null
done
(setsid env -i LASTBYTE_ID=$OTHER_ID $ANCHOR $CHILD hold >/dev/null 2>&1 </dev/null &)
exec sleep 60";

/// Root can raise limits, so only an ordinary user cannot become part of another tree.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_cannot_pass_for_part_of_another_tree() {
    if !as_nobody("escapes::a_command_cannot_pass_for_part_of_another_tree") {
        return;
    }
    let program = Adopting::by(Reach::Scan);
    let (earlier, wait) = (program.run("exec sleep 60").await, "while ! test -e go; do :; done;");
    for other_is in ["earlier", "later"] {
        let folder = tempfile::tempdir().unwrap();
        let go = folder.path().join("go");
        let wait = wait.replace("go", go.to_str().unwrap());
        // The pid of the later one is not known yet: it is in the file.
        let read = format!("{wait} read OTHER OTHER_ID <{};", go.display());
        let impostor = program.run(&format!("{read} {IMPOSTOR}")).await;
        let later = program.run("exec sleep 60").await;
        let other = if other_is == "earlier" { &earlier } else { &later };
        std::fs::write(folder.path().join("new"), format!("{} {}\n", other.pid(), other.id()))
            .unwrap();
        std::fs::rename(folder.path().join("new"), &go).unwrap();
        let daemon = one(&program.wait_for(1));
        let proof = patiently("stop", other.stop_by(StopPolicy::KILL, Verb::Stop)).await;
        assert!(is_alive(daemon.unsigned_abs()), "{other_is}: it is not of that tree");
        assert!(!proof.gone.contains(&impostor.pid()), "{other_is}: {proof:?}");
        let proof = patiently("stop", impostor.stop(Verb::Stop)).await;
        assert!(proof.gone.contains(&impostor.pid()), "{other_is}: {proof:?}");
        assert_eq!(
            (&proof.left, &proof.unattributed),
            (&vec![daemon], &vec![daemon]),
            "{other_is}"
        );
        let close = patiently("close", program.fixture.engine.stop_unowned(STOP)).await;
        assert!(close.unwrap().gone.contains(&daemon), "{other_is}");
        program.wait_for_nobody();
        patiently("stop", later.stop(Verb::Stop)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_outlives_its_leader_is_listed_and_stopped() {
    for reach in reaches() {
        let program = Adopting::by(reach);
        patiently("another", program.run("exit 0").await.ended()).await;
        let process = program.run(DETACHED).await;
        let escaped = one(&program.wait_for(1));
        finish(&process).await;
        let survivors = patiently("survivors", process.survivors()).await;
        let survivors: Vec<_> = survivors.iter().map(|s| (s.pid, s.unattributed)).collect();
        assert_eq!(survivors, [(escaped, false)], "{reach:?}");
        let proof = patiently("stop", process.stop(Verb::Stop)).await;
        assert_eq!((proof.gone, proof.left), (vec![escaped], vec![]), "{reach:?}");
        program.wait_for_nobody();
    }
}

/// A chain of forks without an exec, in which each link lives for a fraction of a millisecond. Each
/// has its own session, and no environment but the path of its program. The chain ends soon after
/// this program, so that a killed test leaves none behind, and after 10,000 links, so that a failed
/// test does not fill the machine with zombies.
fn chain() -> String {
    let own = std::process::id();
    format!(
        "(env -i perl -MPOSIX -e \
         'for (1..10000) {{ fork and POSIX::_exit(0); POSIX::setsid(); \
         $_ == 99 and syswrite STDOUT, \"up\"; $_ % 100 or kill 0, {own} or POSIX::_exit(0) }}' \
         2>/dev/null </dev/null &)"
    )
}

/// The log stays open while any link lives, because it has the pipe.
async fn a_chain_is_broken() {
    for reach in reaches() {
        for policy in [STOP, StopPolicy::KILL] {
            let program = Adopting::by(reach);
            let other = program.run("exec sleep 60").await;
            let process = program.run(&format!("{}; exec sleep 60", chain())).await;
            patiently("its hundredth link is there", process.until_past(1)).await;
            let proof = patiently("stop", process.stop_by(policy, Verb::Stop)).await;
            assert_eq!(proof.left, [], "{reach:?} {policy:?}");
            patiently("no link lives", process.wait_for(|_| false)).await;
            patiently("stop", other.stop(Verb::Stop)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_forks_is_stopped() {
    a_chain_is_broken().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_forks_of_an_ordinary_user_is_stopped() {
    if as_nobody("escapes::a_chain_of_forks_of_an_ordinary_user_is_stopped") {
        a_chain_is_broken().await;
    }
}

/// A named pipe that a chain holds open while any link lives.
struct Held {
    folder: tempfile::TempDir,
    reader: std::fs::File,
}

impl Held {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("held"), mode).unwrap();
        let mut options = std::fs::OpenOptions::new();
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let options = std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, nonblock);
        let reader = options.read(true).open(folder.path().join("held")).unwrap();
        Self { folder, reader }
    }

    /// A script that leaves behind a chain of forks that has nothing but the pipe.
    fn chain(&self) -> String {
        let path = self.folder.path().join("held");
        chain().replace("2>/dev/null", &format!("2>/dev/null >{}", path.display()))
    }

    /// Whether the chain has many links.
    fn is_up(&mut self) -> bool {
        let mut two = [0; 2];
        std::io::Read::read(&mut self.reader, &mut two).is_ok_and(|len| len == 2)
    }

    fn is_held(&mut self) -> bool {
        std::io::Read::read(&mut self.reader, &mut [0]).is_err()
    }
}

/// As a command with the permission to leave its cgroup can do. Then only its tag identifies it.
#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_forks_that_leaves_its_cgroup_is_stopped() {
    if !rustix::process::geteuid().is_root() {
        not_run("only root can leave a cgroup here");
        return;
    }
    let outside = cgroup::own_folder().unwrap().join("cgroup.procs");
    for policy in [STOP, StopPolicy::KILL] {
        for _ in 0..5 {
            let (program, mut held) = (Adopting::by(Reach::Cgroup), Held::new());
            let other = program.run("exec sleep 60").await;
            let leave = format!("sh -c 'echo $PPID >{}'", outside.display());
            let script = format!("({leave}; {}); exec sleep 60", held.chain());
            let process = program.run(&script).await;
            eventually("its hundredth link is there", || held.is_up());
            let proof = patiently("stop", process.stop_by(policy, Verb::Stop)).await;
            assert_eq!((&proof.left, proof.proved), (&vec![], true), "{policy:?}");
            assert!(!held.is_held(), "a link lives: {policy:?} {proof:?}");
            patiently("stop", other.stop(Verb::Stop)).await;
        }
    }
}

async fn no_chain_outlives_a_close() {
    for reach in reaches() {
        for _ in 0..5 {
            let (program, mut held) = (Adopting::by(reach), Held::new());
            let other = program.run("exec sleep 60").await;
            let process = program.run(&held.chain()).await;
            eventually("its hundredth link is there", || held.is_up());
            finish(&process).await;
            let report = patiently("close", program.fixture.engine.close(Survivors::Stop)).await;
            assert!(!held.is_held(), "a link lives: {reach:?} {report:?}");
            drop(other);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_forks_that_outlives_its_leader_is_stopped_by_the_close() {
    no_chain_outlives_a_close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_an_ordinary_user_that_outlives_its_leader_is_stopped_by_the_close() {
    let name =
        "escapes::a_chain_of_an_ordinary_user_that_outlives_its_leader_is_stopped_by_the_close";
    if as_nobody(name) {
        no_chain_outlives_a_close().await;
    }
}

async fn check_unattributed(reaches: Vec<Reach>) {
    for reach in reaches {
        let program = Adopting::by(reach);
        let older = program.run("exec sleep 60").await;
        let process = program.run(&format!("{UNMARKED}; exec sleep 60")).await;
        let escaped = one(&program.wait_for(1));
        if reach == Reach::Cgroup {
            leave_cgroup(escaped);
        }
        let stat = || procfs::read_stat(escaped).unwrap();
        eventually("it is an orphan", || stat().parent == std::process::id().cast_signed());
        eventually("the clock goes on", || procfs::now() > stat().start_time);
        let younger = program.run("exec sleep 60").await;
        for (process, may_be_its) in [(&younger, false), (&process, true), (&older, true)] {
            let named = if may_be_its { vec![escaped] } else { vec![] };
            let survivors = patiently("survivors", process.survivors()).await.into_iter();
            let unclear = survivors.filter(|s| s.unattributed).map(|s| s.pid);
            assert_eq!(unclear.collect::<Vec<_>>(), named, "{reach:?}");
            let proof = patiently("stop", process.stop(Verb::Stop)).await;
            assert_eq!((&proof.left, &proof.unattributed), (&named, &named), "{proof:?}");
            let name = proof.names.get(&escaped).map(String::as_str);
            assert_eq!(name, may_be_its.then_some("testchild"), "{proof:?}");
            assert_eq!(proof.proved, reach == Reach::Cgroup && !may_be_its);
            assert!(is_alive(escaped.unsigned_abs()), "it may be another's");
        }
        let report = patiently("close", program.fixture.engine.close(Survivors::Stop)).await;
        let strangers = report.strangers.expect("this program adopts orphans");
        assert_eq!((strangers.gone, strangers.left), (vec![escaped], vec![]), "{reach:?}");
        program.wait_for_nobody();
    }
}

/// Moves a process out of its cgroup, as root could do itself.
fn leave_cgroup(pid: i32) {
    let outside = cgroup::own_folder().unwrap().join("cgroup.procs");
    std::fs::write(outside, pid.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unattributed_processes_are_reported_and_stopped_by_the_close() {
    check_unattributed(reaches()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unattributed_processes_of_an_ordinary_user_are_stopped_by_the_close() {
    let name = "escapes::unattributed_processes_of_an_ordinary_user_are_stopped_by_the_close";
    if as_nobody(name) {
        check_unattributed(reaches()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_reports_an_unattributed_process_once() {
    let program = Adopting::by(Reach::Scan);
    program.run("exec sleep 60").await;
    program.run(&format!("{UNMARKED}; exec sleep 60")).await;
    let escaped = one(&program.wait_for(1));
    let report = patiently("close", program.fixture.engine.close(Survivors::Stop)).await;
    assert_eq!(report.stopped.len(), 2);
    assert!(report.proofs().all(|proof| proof.left.is_empty()), "{report:?}");
    assert_eq!(report.strangers.unwrap().gone, [escaped]);
    program.wait_for_nobody();
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_single_process_every_orphan_belongs_to_it() {
    let program = Adopting::by(Reach::Scan);
    let process = program.run(&format!("{UNMARKED}; exec sleep 60")).await;
    let escaped = one(&program.wait_for(1));
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    assert!(proof.gone.contains(&escaped), "{proof:?}");
    assert_eq!((proof.left, proof.unattributed), (vec![], vec![]));
    program.wait_for_nobody();
}

/// The session of a container's programs often began outside of it, and has the number 0 there.
#[tokio::test(flavor = "multi_thread")]
async fn orphans_are_found_by_a_program_whose_session_began_outside_its_pid_namespace() {
    let name =
        "escapes::orphans_are_found_by_a_program_whose_session_began_outside_its_pid_namespace";
    if !inside(name, &["--pid", "--fork", "--mount-proc", "--kill-child"]) {
        return;
    }
    let own = procfs::read_stat(std::process::id().cast_signed()).unwrap();
    assert_eq!(own.session, 0, "the session began outside");
    // In a user namespace an ordinary user looks like root, but cannot create cgroups.
    check_unattributed(vec![Reach::Scan]).await;
}

/// Root leaves the cgroup and drops the environment, in the foreground and in the background.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_leaves_its_cgroup_and_drops_its_cookie_is_stopped() {
    if !rustix::process::geteuid().is_root() {
        not_run("only root can leave a cgroup here");
        return;
    }
    let outside = cgroup::own_folder().unwrap().join("cgroup.procs");
    for _ in 0..15 {
        let program = Adopting::by(Reach::Cgroup);
        let other = program.run("exec sleep 60").await;
        let leave = format!("echo $$ >{}; {DETACHED}", outside.display());
        let process = program.run(&format!("sh -c '{leave}'; exec sleep 60")).await;
        let escaped = one(&program.wait_for(1));
        let cgroup = std::fs::read_to_string(format!("/proc/{escaped}/cgroup")).unwrap();
        assert!(!cgroup.contains("/lastbyte-"), "it is out: {cgroup}");
        let proof = patiently("stop", process.stop(Verb::Stop)).await;
        assert!(proof.gone.contains(&escaped), "{proof:?}");
        assert_eq!((&proof.left, proof.proved), (&vec![], true));
        program.wait_for_nobody();
        patiently("stop", other.stop(Verb::Stop)).await;
    }
}

/// What a forgotten process left is not attributed to another one, and does not outlive the close.
#[tokio::test(flavor = "multi_thread")]
async fn survivors_of_a_forgotten_process_are_stopped_by_the_close() {
    for reach in reaches() {
        let program = Adopting::by(reach);
        let running = program.run("exec sleep 60").await;
        let forgotten = program.run(DETACHED).await;
        let left = one(&program.wait_for(1));
        finish(&forgotten).await;
        patiently("the log closes", forgotten.wait_for(|_| false)).await;
        let id = forgotten.id();
        drop(forgotten);
        program.fixture.engine.sweep(tokio::time::Instant::now());
        program.fixture.engine.forget(id).unwrap();
        let proof = patiently("stop", running.stop(Verb::Stop)).await;
        assert_eq!(proof.left, [], "{reach:?}");
        assert!(is_alive(left.unsigned_abs()));
        let report = patiently("close", program.fixture.engine.close(Survivors::Stop)).await;
        assert_eq!(report.strangers.unwrap().gone, [left], "{reach:?}");
        program.wait_for_nobody();
    }
}

/// A program that adopts no orphans does not know all its descendants, and its other children are
/// not ours.
#[tokio::test(flavor = "multi_thread")]
async fn without_adopting_orphans_nothing_is_proved_and_other_children_are_left_alone() {
    let fixture = Fixture::new();
    #[expect(clippy::disallowed_methods, reason = "a child that the engine did not start")]
    let mut own = std::process::Command::new("setsid").args(["sleep", "60"]).spawn().unwrap();
    let launch = Launch { stop: StopPolicy { grace: HOUR, ..STOP }, ..fixture.launch("hold") };
    let process = fixture.start_launch(launch).await;
    fixture.anchor.wait_for(1);
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    assert_eq!((proof.left, proof.unattributed, proof.proved), (vec![], vec![], false));
    let report = patiently("close", fixture.engine.close(Survivors::Stop)).await;
    assert_eq!(report.strangers, None);
    assert_eq!(own.try_wait().unwrap(), None, "it lives");
    own.kill().unwrap();
    own.wait().unwrap();
}

/// As under a user's systemd with `Delegate=yes`: the server's cgroup belongs to the user.
#[tokio::test(flavor = "multi_thread")]
async fn a_delegated_cgroup_gives_an_ordinary_user_a_proof() {
    let name = "escapes::a_delegated_cgroup_gives_an_ordinary_user_a_proof";
    let delegated = Delegated::make();
    if !as_nobody_in(delegated.as_ref().map(|delegated| delegated.0.as_path()), name) {
        return;
    }
    let program = Adopting::with(|_| {});
    if std::env::var_os("CGROUP").is_none_or(|cgroup| cgroup.is_empty()) {
        not_run("only root can delegate a cgroup");
        return;
    }
    assert_eq!(program.fixture.engine.reach(), Reach::Cgroup);
    let process = program.run(&format!("{DETACHED}; exec sleep 60")).await;
    let escaped = one(&program.wait_for(1));
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    assert!(proof.gone.contains(&escaped) && proof.left.is_empty() && proof.proved, "{proof:?}");
    program.wait_for_nobody();
    patiently("close", program.fixture.engine.close(Survivors::Stop)).await;
}

/// A cgroup that belongs to the user `nobody`, removed when dropped.
struct Delegated(std::path::PathBuf);

impl Delegated {
    fn make() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let folder =
            cgroup::own_folder().unwrap().join(format!("delegated-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        for path in [folder.clone(), folder.join("cgroup.procs"), folder.join("cgroup.threads")] {
            std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
        }
        Some(Self(folder))
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        _ = std::fs::remove_dir(&self.0);
    }
}
