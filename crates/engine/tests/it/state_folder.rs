//! A state folder that is removed, replaced or damaged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lastbyte_engine::{Ending, Engine, Id, JournalState, Key, Launch, Process, set_aside_folders};
use lastbyte_testkit::eventually;

use crate::fixture::{finish, patiently, read};
use crate::home::{Home, close, empty_files, open};

/// A state folder inside of another one, so that it can be removed.
struct Removable {
    home: Home,
    state: PathBuf,
}

impl Removable {
    fn new() -> Self {
        let home = Home::new();
        let state = home.state.path().join("state");
        Self { home, state }
    }

    fn open(&self) -> Engine {
        let settings =
            lastbyte_engine::Settings { state: self.state.clone(), ..self.home.settings() };
        open(settings)
    }

    /// Waits until the engine leaves the folder alone for a second, after the first ending.
    fn until_idle(&self) {
        // A sweep does this last.
        eventually("a sweep is over", || self.state.join("journal.reserve").exists());
        // One file may be in use, and more are created only when half of them are.
        eventually("files are made ahead", || empty_files(&self.state.join("logs")).len() >= 15);
    }

    async fn run(&self, engine: &Engine, actions: &str) -> Process {
        let process = engine.start(self.home.launch(actions)).await.unwrap().process;
        finish(&process).await;
        process
    }
}

fn ending(engine: &Engine, id: Id) -> Option<Ending> {
    let snapshot = engine.get(id)?.snapshot();
    snapshot.ending().map(|ending| Ending::clone(ending))
}

/// Repeated, because the engine may be creating a file in it.
fn remove(folder: &Path) {
    eventually("it is removed", || fs::remove_dir_all(folder).is_ok() || !folder.exists());
}

fn state(engine: &Engine) -> JournalState {
    engine.journal_state().unwrap().borrow().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_folder_is_created_again_with_everything_known() {
    let folder = Removable::new();
    let engine = folder.open();
    let before = folder.run(&engine, "print before").await;
    let running = engine.start(folder.home.launch("print early then hold")).await.unwrap().process;
    patiently("its output", running.until_past(4)).await;
    assert!(before.is_recorded() == Some(true) && running.is_recorded() == Some(true));
    folder.until_idle();
    remove(&folder.state);
    let after = folder.run(&engine, "print after").await;
    assert_eq!(state(&engine), JournalState { rewritten: 1, ..JournalState::default() });
    assert!([&before, &running, &after].iter().all(|process| process.is_recorded() == Some(true)));
    // A process that needs a file gets one.
    let long = folder.run(&engine, "write-bytes 100000").await;
    assert_eq!(fs::metadata(long.log_file().unwrap()).unwrap().len(), 100_000);
    folder.home.anchor.wait_for(1);
    folder.home.anchor.tell("exit 3");
    finish(&running).await;
    let known: Vec<_> = [&before, &running, &after, &long]
        .map(|process| (process.id(), ending(&engine, process.id()).unwrap()))
        .into();
    close(engine).await;
    let engine = folder.open();
    for (id, was) in known {
        assert_eq!(ending(&engine, id), Some(was));
    }
    let again = engine.get(before.id()).unwrap();
    assert_eq!(read(&again, &again.snapshot(), 0..6), b"before");
    assert!(again.is_recorded() == Some(true));
    close(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_notices_a_missing_journal() {
    let folder = Removable::new();
    let engine = folder.open();
    let process = folder.run(&engine, "print x").await;
    let journal = folder.state.join("journal");
    folder.until_idle();
    fs::remove_file(&journal).unwrap();
    engine.sweep(tokio::time::Instant::now());
    assert!(journal.exists() && process.is_recorded() == Some(true));
    // A folder that was moved away counts as removed.
    fs::rename(&folder.state, folder.home.state.path().join("elsewhere")).unwrap();
    engine.sweep(tokio::time::Instant::now());
    assert!(journal.exists() && process.is_recorded() == Some(true));
    assert_eq!(state(&engine).rewritten, 2);
    close(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_cannot_be_created_is_reported_until_it_can() {
    let folder = Removable::new();
    let engine = folder.open();
    let before = folder.run(&engine, "print before").await;
    folder.until_idle();
    remove(&folder.state);
    fs::write(&folder.state, "no folder").unwrap();
    let after = folder.run(&engine, "print after").await;
    assert!(before.is_recorded() == Some(false) && after.is_recorded() == Some(false));
    let why = state(&engine).trouble.expect("it cannot be written");
    assert!(why.starts_with("File exists") || why.starts_with("Not a directory"), "{why}");
    fs::remove_file(&folder.state).unwrap();
    eventually("it is written again", || {
        before.is_recorded() == Some(true) && after.is_recorded() == Some(true)
    });
    assert_eq!(state(&engine), JournalState { rewritten: 1, ..JournalState::default() });
    close(engine).await;
    let engine = folder.open();
    assert!(ending(&engine, before.id()).is_some() && ending(&engine, after.id()).is_some());
    close(engine).await;
}

/// Root can read every folder, so for root this only checks that nothing fails.
#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_folder_does_not_count_as_removed() {
    let folder = Removable::new();
    let engine = folder.open();
    folder.run(&engine, "print x").await;
    folder.until_idle();
    fs::set_permissions(&folder.state, fs::Permissions::from_mode(0o000)).unwrap();
    let process = folder.run(&engine, "print y").await;
    fs::set_permissions(&folder.state, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!((process.is_recorded(), state(&engine)), (Some(true), JournalState::default()));
    close(engine).await;
    let engine = folder.open();
    assert!(ending(&engine, process.id()).is_some());
    close(engine).await;
}

/// Neither engine overwrites the other's journal.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_another_engine_created_again_is_left_alone() {
    let folder = Removable::new();
    let first = folder.open();
    let ours = folder.run(&first, "print ours").await;
    folder.until_idle();
    remove(&folder.state);
    let second = folder.open();
    let theirs = folder.run(&second, "print theirs").await;
    first.sweep(tokio::time::Instant::now());
    let why = state(&first).trouble.expect("another one writes there");
    assert_eq!(why, "another server uses the state folder");
    assert!(ours.is_recorded() == Some(false) && theirs.is_recorded() == Some(true));
    close(second).await;
    eventually("the lock is free", || {
        first.sweep(tokio::time::Instant::now());
        state(&first).trouble.as_deref() == Some("another file has taken the place of the journal")
    });
    close(first).await;
    let third = folder.open();
    assert!(ending(&third, theirs.id()).is_some());
    close(third).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_was_replaced_is_left_alone_and_reported() {
    let folder = Removable::new();
    let engine = folder.open();
    let process = folder.run(&engine, "print x").await;
    folder.until_idle();
    fs::remove_file(folder.state.join("journal")).unwrap();
    fs::write(folder.state.join("journal"), "of a backup").unwrap();
    engine.sweep(tokio::time::Instant::now());
    assert!(process.is_recorded() == Some(false));
    assert_eq!(fs::read(folder.state.join("journal")).unwrap(), b"of a backup");
    fs::remove_file(folder.state.join("journal")).unwrap();
    engine.sweep(tokio::time::Instant::now());
    assert!(process.is_recorded() == Some(true));
    close(engine).await;
}

fn names(folder: &Path) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().flatten().map(name).collect();
    names.sort();
    names
}

/// The names in the newest `set-aside` folder.
fn set_aside(state: &Path) -> Vec<String> {
    set_aside_folders(state).unwrap().pop().map(|folder| names(&folder)).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_survive_a_missing_empty_or_damaged_journal() {
    for damage in ["missing", "empty", "zeros", "header", "middle", "tail", "unreleased"] {
        let folder = Removable::new();
        let engine = folder.open();
        let mut launch = folder.home.launch("write-bytes 5000");
        launch.key = Some(Key("k".into()));
        let processes = [
            folder.run(&engine, "write-bytes 5000").await,
            engine.start(launch).await.unwrap().process,
        ];
        finish(&processes[1]).await;
        close(engine).await;
        let journal = folder.state.join("journal");
        // A sweep under way would write a journal that is gone again; its engine has the lock until then.
        fs::File::open(journal.with_extension("lock")).unwrap().lock().unwrap();
        let mut bytes = fs::read(&journal).unwrap();
        let length = bytes.len();
        match damage {
            "missing" => fs::remove_file(&journal).unwrap(),
            "empty" => fs::write(&journal, b"").unwrap(),
            "zeros" => fs::write(&journal, vec![0; length]).unwrap(),
            "tail" => fs::write(&journal, &bytes[..200]).unwrap(),
            other => {
                match other {
                    // The version from before the first release.
                    "unreleased" => bytes[8] = 1,
                    "header" => bytes[20] ^= 1,
                    _ => bytes[100] ^= 1,
                }
                fs::write(&journal, &bytes).unwrap();
            }
        }
        // On a slow machine a log also has an index.
        let logs = folder.state.join("logs");
        let mut want = names(&logs);
        // An empty one was created ahead, and may be removed at any moment.
        want.retain(|name| fs::metadata(logs.join(name)).is_ok_and(|file| file.len() > 0));
        for process in &processes {
            let name = process.log_file().unwrap().file_name().unwrap();
            assert!(want.iter().any(|want| name == want.as_str()), "{want:?}");
        }
        if let "zeros" | "header" | "middle" | "unreleased" = damage {
            want.push("journal".into());
        }
        want.sort();
        // Later starts set nothing else aside.
        for start in 0..3 {
            let engine = folder.open();
            let told = engine.restored().set_aside.as_ref().map(|(_, files)| *files);
            assert_eq!(told, (start == 0).then_some(want.len()), "{damage}");
            assert_eq!(engine.restored().removed_files, 0, "{damage}");
            assert_eq!(set_aside(&folder.state), want, "{damage}");
            close(engine).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_after_the_removal_of_the_log_folder_is_kept() {
    let folder = Removable::new();
    let engine = folder.open();
    folder.run(&engine, "write-bytes 5000").await;
    folder.until_idle();
    remove(&folder.state.join("logs"));
    let launch: Launch = folder.home.launch("write-bytes 400000");
    let after = engine.start(launch).await.unwrap().process;
    let (ending, bytes) = finish(&after).await;
    assert_eq!((ending.kept.clone(), bytes.len()), (lastbyte_engine::Kept::Whole, 400_000));
    close(engine).await;
}
