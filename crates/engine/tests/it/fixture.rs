//! An engine in a temporary folder, with an anchor for the helpers it starts.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::time::Duration;

use lastbyte_engine::{
    Cause, Closing, DrainRule, Ending, Engine, EnvEdit, Kept, Launch, Process, Reach, ReachChoice,
    Settings, Snapshot, Started, Status, StopProof,
};
use lastbyte_output::log::{Piece, Run, Stream};
use lastbyte_testkit::{Anchor, PATIENCE, has_cgroups, script};

/// Ends its helpers and removes its files when dropped.
pub struct Fixture {
    pub engine: Engine,
    pub anchor: Anchor,
    pub state: tempfile::TempDir,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(state.path());
        change(&mut settings);
        Self { engine: Engine::new(settings).unwrap(), anchor: Anchor::listen(), state }
    }

    /// A launch of `testchild` with these actions, which knows the anchor.
    pub fn launch(&self, actions: &str) -> Launch {
        self.launch_argv(script(actions))
    }

    pub fn launch_argv(&self, argv: Vec<OsString>) -> Launch {
        let (name, value) = self.anchor.env();
        Launch { env: vec![EnvEdit::Set(name.into(), value)], ..Launch::argv(argv) }
    }

    pub async fn start(&self, actions: &str) -> Process {
        self.start_launch(self.launch(actions)).await
    }

    pub async fn start_launch(&self, launch: Launch) -> Process {
        let Started { process, .. } = self.engine.start(launch).await.expect("it starts");
        process
    }

    /// The number of logs in the state folder, with or without an index.
    pub fn files(&self) -> usize {
        let files = std::fs::read_dir(self.state.path().join("logs")).unwrap();
        let logs = files.map(|file| file.unwrap().path().with_extension(""));
        logs.collect::<BTreeSet<_>>().len()
    }
}

/// The reaches that leave nothing of a tree and that this user has.
pub fn sure_reaches() -> Vec<Reach> {
    let cgroup = has_cgroups("by cgroup").then_some(Reach::Cgroup);
    cgroup.into_iter().chain([Reach::Scan]).collect()
}

/// A fixture whose trees have cgroups. If this user cannot create cgroups, reports it and returns
/// `None`.
pub fn fixture_with_cgroups() -> Option<Fixture> {
    let only = |settings: &mut Settings| settings.reach = ReachChoice::Only(Reach::Cgroup);
    has_cgroups("cgroups").then(|| Fixture::with(only))
}

/// Fails the test if it takes unreasonably long.
pub async fn patiently<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain: {what}"),
    }
}

/// The answer to a stop that ended these processes, in a program that adopts no orphans: it does
/// not know all its descendants, and so proves nothing.
pub fn nobody_left(pids: Vec<i32>, reach: Reach) -> StopProof {
    let (signalled, gone) = (pids.clone(), pids);
    let names = gone.iter().map(|pid| (*pid, "testchild".into())).collect();
    StopProof { signalled, gone, left: vec![], unattributed: vec![], names, reach, proved: false }
}

/// The ending, and the output without late output.
pub async fn finish(process: &Process) -> (std::sync::Arc<Ending>, Vec<u8>) {
    let ending = patiently("the process ends", process.ended()).await;
    let bytes = read(process, &process.snapshot(), 0..ending.final_len);
    (ending, bytes)
}

pub async fn finish_text(process: &Process) -> (Status, String) {
    let (ending, bytes) = finish(process).await;
    (ending.status, String::from_utf8(bytes).unwrap())
}

/// These bytes of the log; none may be missing.
pub fn read(process: &Process, snapshot: &Snapshot, range: std::ops::Range<u64>) -> Vec<u8> {
    let reader = process.reader();
    let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap()];
    let mut done = 0;
    while done < bytes.len() {
        match reader.read(snapshot, range.start + done as u64, &mut bytes[done..]).unwrap() {
            Piece::Bytes(count) => done += count,
            other => panic!("{other:?} at {done} of {range:?}"),
        }
    }
    bytes
}

/// The bytes of one stream, of a log that dropped nothing.
pub fn read_stream(process: &Process, snapshot: &Snapshot, stream: Stream) -> Vec<u8> {
    let all = read(process, snapshot, 0..snapshot.extent.len);
    let of_stream = runs(process, snapshot, 0..snapshot.extent.len);
    let of_stream = of_stream.into_iter().filter(|run| run.stream == stream);
    of_stream
        .flat_map(|run| all[run.range.start as usize..run.range.end as usize].to_vec())
        .collect()
}

/// The runs of a range; none may be missing.
pub fn runs(process: &Process, snapshot: &Snapshot, range: std::ops::Range<u64>) -> Vec<Run> {
    let (reader, mut found) = (process.reader(), Vec::new());
    let (mut at, mut chunk) = (range.start, vec![0; 10_000]);
    while at < range.end {
        let most = chunk.len().min((range.end - at) as usize);
        let (piece, runs) = reader.read_runs(snapshot, at, &mut chunk[..most]).unwrap();
        let Piece::Bytes(count) = piece else { panic!("{piece:?} at {at} of {range:?}") };
        found.extend(runs);
        at += count as u64;
    }
    found
}

/// A drain rule for tests: holders are searched for until they are found.
pub fn drain(quiet_window: Duration, limit: Duration) -> DrainRule {
    DrainRule { quiet_window, limit, holders: PATIENCE }
}

pub const HOUR: Duration = Duration::from_secs(3600);

/// That an ending which nobody saw says only what is known.
pub(crate) fn check_nothing_made_up(ending: &Ending) {
    assert!(!ending.was_seen() && ending.times.ran().is_none(), "{ending:?}");
    let claims = (ending.cause, &ending.closing, &ending.kept, &ending.usage);
    assert_eq!(claims, (Cause::Unknown, &Closing::Unknown, &Kept::Unknown, &None));
}
