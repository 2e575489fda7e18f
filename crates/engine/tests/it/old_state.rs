//! State folders of earlier versions: a newer engine reads them without a difference.
//!
//! One folder for each version of the journal stays in `tests/fixtures` for ever. With
//! `LASTBYTE_TEST_NEW_STATE=PATH` the test writes a folder of the current version there instead.

use std::fs;
use std::path::Path;
use std::time::Duration;

use lastbyte_engine::{
    Cause, Closing, Engine, EnvEdit, Filter, History, Id, Kept, Key, Launch, LostWhy, OnTimeout,
    Process, Sandbox, Session, Settings, Signal, Status, StopPolicy, Streams,
};
use lastbyte_output::log::Stream;

use crate::fixture::{check_nothing_made_up, finish, patiently, read, read_stream};
use crate::home::{close, open};
use crate::log_files::copy_of;

/// Left by a server that was killed while one of its processes ran.
const VERSION_2: [(&str, &[u8]); 5] = [
    ("journal", include_bytes!("../fixtures/state-v2/journal")),
    ("logs/15.log", include_bytes!("../fixtures/state-v2/logs/15.log")),
    ("logs/16.index", include_bytes!("../fixtures/state-v2/logs/16.index")),
    ("logs/16.log", include_bytes!("../fixtures/state-v2/logs/16.log")),
    ("logs/17.log", include_bytes!("../fixtures/state-v2/logs/17.log")),
];

/// A launch with every field set.
fn named(name: &str, script: &str) -> Launch {
    Launch {
        cwd: Some("/".into()),
        env: vec![EnvEdit::Set("A_NAME".into(), "a value".into())],
        session: Some(Session("a session".into())),
        labels: [("name".to_owned(), name.to_owned())].into(),
        stop: StopPolicy { signal: Signal::INT, grace: Duration::from_millis(1500) },
        ..Launch::shell(script)
    }
}

fn keyed() -> Launch {
    Launch { key: Some(Key("a key".into())), ..named("short", "printf few; exit 3") }
}

fn split(name: &str, script: &str) -> Launch {
    Launch { streams: Streams::Split, ..named(name, script) }
}

/// The numbers up to `count`, a line each.
fn numbers(count: u32) -> Vec<u8> {
    (1..=count).flat_map(|number| format!("{number}\n").into_bytes()).collect()
}

async fn make(folder: &Path) {
    let state = tempfile::tempdir().unwrap();
    let reach = lastbyte_engine::ReachChoice::Only(lastbyte_engine::Reach::Scan);
    let settings = Settings { history: History::Journal, reach, ..Settings::new(state.path()) };
    let engine = Engine::new(settings).unwrap();
    let mut timed_out = named("timed out", "sleep 0.2");
    timed_out.timeouts.wall = Some(Duration::from_millis(1));
    timed_out.on_timeout = OnTimeout::Background;
    for launch in [
        keyed(),
        named("silent", "true"),
        split("split", "printf out; sleep 0.2; printf err >&2"),
        named("long", "seq 1 1500"),
        split("long split", "seq 1 1000; seq 1 1200 >&2"),
        named("forgotten", "printf forgotten"),
        Launch { sandbox: Sandbox::External, ..named("killed", "kill -9 $$") },
        timed_out,
    ] {
        let is_forgotten = launch.labels["name"] == "forgotten";
        let process = engine.start(launch).await.unwrap().process;
        finish(&process).await;
        if is_forgotten {
            engine.forget(process.id()).unwrap();
        }
    }
    engine.start(Launch::argv(["/no/such/program"])).await.unwrap_err();
    let running = engine.start(named("running", "printf so-far; sleep 1000")).await.unwrap();
    patiently("its output", running.process.until_past(5)).await;
    let copy = copy_of(state.path());
    fs::create_dir_all(folder.join("logs")).unwrap();
    fs::copy(copy.path().join("journal"), folder.join("journal")).unwrap();
    for entry in fs::read_dir(copy.path().join("logs")).unwrap().flatten() {
        if entry.metadata().unwrap().len() > 0 {
            fs::copy(entry.path(), folder.join("logs").join(entry.file_name())).unwrap();
        }
    }
    close(engine).await;
}

fn by_name(engine: &Engine, name: &str) -> Process {
    let label = Some(("name".to_owned(), name.to_owned()));
    let page = engine.list(&Filter { label, ..Filter::default() }, None, 2);
    assert_eq!(page.processes.len(), 1, "{name}");
    page.processes[0].0.clone()
}

fn check(engine: &Engine, name: &str, status: Status, want: &[u8]) -> Process {
    let process = by_name(engine, name);
    let snapshot = process.snapshot();
    let ending = snapshot.ending().unwrap();
    assert_eq!((ending.status, ending.final_len), (status, want.len() as u64), "{name}");
    if status == Status::Lost(LostWhy::ServerGone) {
        check_nothing_made_up(ending);
    } else {
        assert_eq!((&ending.kept, ending.cause), (&Kept::Whole, Cause::Own), "{name}");
        assert_eq!(ending.closing, Closing::Eof, "{name}");
        assert!(ending.usage.is_some() && ending.was_seen(), "{name}");
        assert!(ending.times.started <= ending.times.known_at(), "{name}");
    }
    let spec = process.spec();
    assert_eq!(
        (spec.cwd.to_str(), spec.session.as_ref().unwrap().0.as_str()),
        (Some("/"), "a session")
    );
    assert_eq!(spec.stop, StopPolicy { signal: Signal::INT, grace: Duration::from_millis(1500) });
    assert_eq!((spec.limits, spec.enforcement), (None, None), "not known of an earlier version");
    assert!(process.pid() > 0 && spec.started == ending.times.started, "{name}");
    if spec.streams == Streams::Merged {
        assert!(read(&process, &snapshot, 0..snapshot.extent.len) == want, "{name}");
    }
    process
}

fn check_split(engine: &Engine, name: &str, out: &[u8], err: &[u8]) -> Process {
    let process = check(engine, name, Status::Exited(0), &[out, err].concat());
    let snapshot = process.snapshot();
    assert!(read_stream(&process, &snapshot, Stream::Out) == out, "{name}");
    assert!(read_stream(&process, &snapshot, Stream::Err) == err, "{name}");
    process
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_folder_of_version_2_is_read_completely() {
    if let Some(folder) = std::env::var_os("LASTBYTE_TEST_NEW_STATE") {
        return make(Path::new(&folder)).await;
    }
    let state = tempfile::tempdir().unwrap();
    fs::create_dir(state.path().join("logs")).unwrap();
    for (name, bytes) in VERSION_2 {
        fs::write(state.path().join(name), bytes).unwrap();
    }
    let settings = Settings { history: History::Journal, ..Settings::new(state.path()) };
    // The second engine reads what the first has rewritten.
    for (ended, lost) in [(7, 1), (8, 0)] {
        let engine = open(settings.clone());
        let restored = engine.restored();
        assert_eq!((restored.ended, restored.lost), (ended, lost));
        assert_eq!((restored.torn_bytes, restored.unknown_records), (0, 0));
        assert_eq!((restored.removed_files, &restored.set_aside), (0, &None));
        let short = check(&engine, "short", Status::Exited(3), b"few");
        assert_eq!(short.spec().key, Some(Key("a key".into())));
        let again = engine.start(keyed()).await.unwrap();
        assert!(again.attached && again.process.id() == short.id(), "the same fingerprint");
        check(&engine, "silent", Status::Exited(0), b"");
        let split = check_split(&engine, "split", b"out", b"err");
        let stamps = split.reader().stamps(0..6, 9).unwrap().stamps;
        assert!(stamps.last().unwrap().at_ms - stamps[0].at_ms >= 200, "{stamps:?}");
        check(&engine, "long", Status::Exited(0), &numbers(1500));
        check_split(&engine, "long split", &numbers(1000), &numbers(1200));
        let killed = Status::Signalled { signal: Signal::KILL, core_dumped: false };
        assert_eq!(check(&engine, "killed", killed, b"").spec().sandbox, Sandbox::External);
        let timed_out = check(&engine, "timed out", Status::Exited(0), b"");
        assert!(timed_out.snapshot().timed_out_at.is_some());
        check(&engine, "running", Status::Lost(LostWhy::ServerGone), b"so-far");
        let ids = |in_file: bool| -> usize {
            let page = engine.list(&Filter::default(), None, 99);
            page.processes.iter().filter(|(one, _)| one.log_file().is_some() == in_file).count()
        };
        assert_eq!((ids(true), ids(false)), (3, 5));
        let newest: Id = by_name(&engine, "running").id();
        let next = engine.start(Launch::shell("true")).await.unwrap().process;
        assert!(next.id() > newest);
        finish(&next).await;
        engine.forget(next.id()).unwrap();
        close(engine).await;
    }
}
