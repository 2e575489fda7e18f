//! An engine whose program is killed in the middle of its work.
//!
//! Each test runs itself again as another program, kills that, and continues with its state folder.
#![expect(clippy::disallowed_methods, reason = "a test harness around the test, not a command")]

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use lastbyte_engine::{
    Engine, Filter, History, Id, Key, Launch, LostWhy, Phases, Process, Reach, ReachChoice,
    Session, Settings, Status, StopPolicy, Streams, Survivors, Verb,
};
use lastbyte_testkit::{has_cgroups, is_alive, pattern_bytes, script};
use tokio::task::JoinSet;

use crate::fixture::{check_nothing_made_up, patiently, read};
use crate::home::{Home, close, open};

const STATE: &str = "LASTBYTE_TEST_STATE";
const SAYS: &str = "doomed: ";
const TO_FORGET: &str = "to be forgotten";

/// In the program that will be killed: its state folder.
fn doomed() -> Option<PathBuf> {
    std::env::var_os(STATE).map(PathBuf::from)
}

/// The program that will be killed, and its output.
struct Doomed {
    program: Child,
    says: Lines<BufReader<ChildStdout>>,
}

impl Doomed {
    /// Runs this test again.
    fn run(test: &str, home: &Home) -> Self {
        let (name, value) = home.anchor.env();
        let mut program = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env(STATE, home.state.path())
            .env(name, value)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let says = BufReader::new(program.stdout.take().unwrap()).lines();
        Self { program, says }
    }

    fn next(&mut self) -> Option<String> {
        let mut lines = self.says.by_ref().map(Result::unwrap);
        lines.find_map(|line| line.split_once(SAYS).map(|(_, said)| said.to_owned()))
    }

    /// Kills it, and returns what it has printed since.
    fn kill(mut self) -> Vec<String> {
        self.program.kill().unwrap();
        self.program.wait().unwrap();
        std::iter::from_fn(|| self.next()).collect()
    }
}

fn say(text: &str) {
    // One write for each line, so that every line is complete.
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{SAYS}{text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn settings(state: PathBuf) -> Settings {
    Settings { history: History::Journal, ..Settings::new(state) }
}

/// Everything that was seen of an ended process, as one line.
fn line(process: &Process) -> String {
    let snapshot = process.snapshot();
    let ending = snapshot.ending().unwrap();
    let bytes = read(process, &snapshot, 0..ending.final_len);
    let sum = bytes.iter().fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
    format!("{} {sum} {ending:?} {:?}", process.id(), process.spec())
}

/// Starts and ends processes until it is killed.
async fn work(engine: Engine) {
    let mut tasks = JoinSet::new();
    for task in 0..4_u64 {
        let engine = engine.clone();
        tasks.spawn(async move {
            for round in 0.. {
                let bytes = (task * 7919 + round * 104_729) % 200_000;
                let mut launch = Launch::argv(script(&format!("write-bytes {bytes}")));
                launch.labels = [("bytes".to_owned(), bytes.to_string())].into();
                let forget = round % 5 == 4;
                launch.session = forget.then(|| Session(TO_FORGET.into()));
                launch.streams = if round % 2 == 0 { Streams::Merged } else { Streams::Split };
                let process = engine.start(launch).await.unwrap().process;
                process.ended().await;
                say(&line(&process));
                if forget {
                    process.wait_for(|_| false).await;
                    engine.forget(process.id()).unwrap();
                    say(&format!("forgot {}", process.id()));
                }
            }
        });
    }
    tasks.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endings_survive_crashes_unchanged_and_none_is_made_up() {
    if let Some(state) = doomed() {
        return work(open(settings(state))).await;
    }
    let name = "crash::endings_survive_crashes_unchanged_and_none_is_made_up";
    let home = Home::new();
    let mut seen: Vec<String> = Vec::new();
    // Each continues with the state of all earlier ones.
    for round in 0..5 {
        let mut doomed = Doomed::run(name, &home);
        for _ in 0..20 + 13 * round {
            seen.push(doomed.next().expect("it says something"));
        }
        seen.extend(doomed.kill());
        let engine = home.open();
        let forgotten: Vec<String> =
            seen.iter().filter_map(|said| said.strip_prefix("forgot ")).map(Into::into).collect();
        seen.retain(|said| {
            let id = said.split(' ').next().unwrap();
            id != "forgot" && !forgotten.iter().any(|gone| gone == id)
        });
        for said in &seen {
            let id: Id = said.split(' ').next().unwrap().parse().unwrap();
            match engine.get(id) {
                Some(process) => assert_eq!(line(&process), *said),
                // It was killed before it could print that it has forgotten this one.
                None => assert!(said.contains(TO_FORGET), "{said}"),
            }
        }
        seen.retain(|said| engine.get(said.split(' ').next().unwrap().parse().unwrap()).is_some());
        for (process, snapshot) in engine.list(&Filter::default(), None, usize::MAX).processes {
            let asked: u64 = process.spec().labels["bytes"].parse().unwrap();
            let ending = snapshot.ending().expect("nobody runs");
            match ending.status {
                Status::Exited(0) => assert_eq!(ending.final_len, asked),
                Status::Lost(LostWhy::ServerGone) => assert!(ending.final_len <= asked),
                other => panic!("{other:?}"),
            }
            let bytes = read(&process, &snapshot, 0..ending.final_len);
            assert!(bytes == pattern_bytes(0..ending.final_len), "of {}", process.id());
        }
    }
    assert!(seen.len() > 50, "{}", seen.len());
}

/// At every moment a byte is in the pipe or in the file, and never only in the server's memory.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_not_in_the_file_are_still_in_the_pipe() {
    if let Some(state) = doomed() {
        let engine = open(settings(state));
        let process = engine.start(Launch::argv(script("chatter 0 0"))).await.unwrap().process;
        process.until_past(100).await;
        say(&process.id().to_string());
        return std::future::pending().await;
    }
    for _ in 0..5 {
        let home = Home::new();
        let mut doomed =
            Doomed::run("crash::bytes_that_are_not_in_the_file_are_still_in_the_pipe", &home);
        let pid = home.anchor.wait_for(1)[0];
        // This end keeps the pipe after the server is gone.
        let pipe = File::open(format!("/proc/{pid}/fd/1")).unwrap();
        let id: Id = doomed.next().unwrap().parse().unwrap();
        doomed.kill();
        let engine = home.open();
        let process = engine.get(id).unwrap();
        let snapshot = process.snapshot();
        let stored = snapshot.extent.len;
        assert!(read(&process, &snapshot, 0..stored) == pattern_bytes(0..stored));
        let mut left = vec![0; 100];
        (&pipe).read_exact(&mut left).unwrap();
        assert!(left == pattern_bytes(stored..stored + 100), "a byte behind {stored} is lost");
        close(engine).await;
    }
}

/// A process that ends, and one that keeps running with a child in another session.
async fn leave_a_tree(state: PathBuf, reach: Reach) {
    let engine = open(Settings { reach: ReachChoice::Only(reach), ..settings(state) });
    // The next process reuses the cgroup; its members do not belong to this one.
    let first = engine.start(Launch::argv(script("exit 0"))).await.unwrap().process;
    first.ended().await;
    first.wait_for(|_| false).await;
    engine.sweep(tokio::time::Instant::now());
    let process = engine.start(tree()).await.unwrap().process;
    process.until_past(0).await;
    say(&format!("{} {}", first.id(), process.id()));
    std::future::pending().await
}

fn tree() -> Launch {
    let launch = Launch::argv(script("print x then setsid-background hold end then hold"));
    Launch { key: Some(Key("k".into())), ..launch }
}

async fn check_lost(name: &str, reach: Reach) {
    if let Some(state) = doomed() {
        return leave_a_tree(state, reach).await;
    }
    let home = Home::new();
    let mut doomed = Doomed::run(name, &home);
    let said = doomed.next().unwrap();
    let (first, id) = said.split_once(' ').unwrap();
    let (first, id): (Id, Id) = (first.parse().unwrap(), id.parse().unwrap());
    let pids = home.anchor.wait_for(2);
    doomed.kill();
    // Twice: the second engine finds the ending that the first has recorded.
    for restored in [(1, 1), (2, 0)] {
        let engine = home.open();
        assert_eq!((engine.restored().ended, engine.restored().lost), restored);
        let process = engine.get(id).unwrap();
        let snapshot = process.snapshot();
        let ending = snapshot.ending().unwrap();
        assert_eq!(ending.status, Status::Lost(LostWhy::ServerGone));
        check_nothing_made_up(ending);
        assert_eq!((ending.final_len, snapshot.log_open), (1, false));
        assert_eq!(read(&process, &snapshot, 0..1), b"x");
        assert!(pids.iter().all(|pid| is_alive(*pid)), "a restart kills nobody");
        assert_eq!(process.runs_unseen(), Some(process.pid()));
        let lost = Phases { ended: 1, lost: 1, ..Phases::default() };
        assert_eq!((engine.phases(), engine.get(first).unwrap().runs_unseen()), (lost, None));
        let again = engine.start(tree()).await.unwrap();
        assert!(again.attached && again.process.id() == id);
        let found = patiently("survivors", process.survivors()).await;
        let mut found: Vec<u32> = found.iter().map(|one| one.pid.unsigned_abs()).collect();
        found.sort_unstable();
        assert_eq!(found, pids);
        let innocent = engine.get(first).unwrap();
        assert_eq!(patiently("nobody", innocent.survivors()).await, []);
        if restored == (2, 0) {
            let proof = patiently("a proof", process.stop_by(StopPolicy::KILL, Verb::Stop)).await;
            assert_eq!((proof.gone.len(), proof.left.len()), (2, 0), "{proof:?}");
            assert_eq!(proof.reach, reach);
            assert!(pids.iter().all(|pid| !is_alive(*pid)));
            assert_eq!(process.runs_unseen(), None);
        }
        patiently("close", engine.close(Survivors::Leave)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tree_of_a_lost_process_is_found_by_its_cgroup_and_stopped_with_proof() {
    let name = "crash::the_tree_of_a_lost_process_is_found_by_its_cgroup_and_stopped_with_proof";
    if has_cgroups("cgroups") {
        check_lost(name, Reach::Cgroup).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tree_of_a_lost_process_is_found_by_its_cookie_and_stopped_with_proof() {
    let name = "crash::the_tree_of_a_lost_process_is_found_by_its_cookie_and_stopped_with_proof";
    check_lost(name, Reach::Scan).await;
}
