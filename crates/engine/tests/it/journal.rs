//! What the journal contains, and what it never does.

use std::os::unix::fs::PermissionsExt;

use lastbyte_engine::{Ending, EnvEdit, Id, JournalState, Launch};

use crate::fixture::finish;
use crate::full_disk::{MOUNTS, SmallDisk};
use crate::home::{Home, close};
use lastbyte_testkit::inside;

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_has_names_of_variables_but_no_values() {
    let home = Home::new();
    let engine = home.open();
    let mut launch = home.launch("exit 0");
    launch.env.push(EnvEdit::Set("EDITED_NAME".into(), "edited-secret".into()));
    launch.env.push(EnvEdit::Unset("UNSET_NAME".into()));
    launch.forced_env.push(("FORCED_NAME".into(), "forced-secret".into()));
    launch.key = Some(lastbyte_engine::Key("the-key".into()));
    finish(&engine.start(launch).await.unwrap().process).await;
    for written in [home.journal(), {
        close(engine).await;
        drop(home.open());
        home.journal()
    }] {
        for name in ["EDITED_NAME", "UNSET_NAME", "FORCED_NAME", "the-key"] {
            assert!(has(&written, name), "{name}");
        }
        for secret in ["edited-secret", "forced-secret"] {
            assert!(!has(&written, secret), "{secret}");
        }
    }
    let mode = |name: &str| home.state.path().join(name).metadata().unwrap().permissions().mode();
    assert_eq!((mode("journal") & 0o777, mode("journal.lock") & 0o777), (0o600, 0o600));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_fails_leaves_nothing_behind() {
    let home = Home::new();
    let engine = home.open();
    let missing = engine.start(Launch::argv(["/no/such/program"])).await;
    missing.expect_err("there is no such program");
    close(engine).await;
    let engine = home.open();
    assert_eq!(*engine.restored(), lastbyte_engine::Restored::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_without_a_journal_writes_none_and_removes_no_logs() {
    let home = Home::new();
    let settings = lastbyte_engine::Settings::new(home.state.path());
    let engine = lastbyte_engine::Engine::new(settings.clone()).unwrap();
    let process = engine.start(home.launch("write-bytes 5000")).await.unwrap().process;
    finish(&process).await;
    close(engine).await;
    assert!(!home.state.path().join("journal").exists());
    let log = process.log_file().unwrap();
    assert!(log.exists());
    let engine = lastbyte_engine::Engine::new(settings).unwrap();
    let other = engine.start(home.launch("write-bytes 6000")).await.unwrap().process;
    finish(&other).await;
    assert_ne!(other.log_file(), Some(log));
    assert_eq!(std::fs::metadata(log).unwrap().len(), 5000);
    assert!(engine.get(process.id()).is_none());
}

/// Uses up all disk space until it is dropped.
struct Filler(std::path::PathBuf);

impl Filler {
    fn fill(folder: &std::path::Path) -> Self {
        let path = folder.join("filler");
        let mut file = std::fs::File::create(&path).unwrap();
        while std::io::Write::write_all(&mut file, &[1; 4096]).is_ok() {}
        Self(path)
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_wait_for_a_full_disk_are_served_and_written_later() {
    let name = "journal::records_that_wait_for_a_full_disk_are_served_and_written_later";
    if !inside(name, &MOUNTS) {
        return;
    }
    // With an existing journal, and with one that does not fit on the disk at all.
    for full_from_the_start in [false, true] {
        let home = Home::new();
        let _disk = SmallDisk::at(home.state.path());
        let filler = full_from_the_start.then(|| Filler::fill(home.state.path()));
        let engine = home.open();
        let filler = filler.unwrap_or_else(|| Filler::fill(home.state.path()));
        let mut ended: Vec<(Id, Ending)> = Vec::new();
        for number in 0..30 {
            let labels = [("n".to_owned(), format!("label-{number}-"))].into();
            let launch = Launch { labels, ..home.launch("print some") };
            let process = engine.start(launch).await.unwrap().process;
            let (ending, bytes) = finish(&process).await;
            assert_eq!(bytes, b"some");
            ended.push((process.id(), Ending::clone(&ending)));
        }
        let journal = home.state.path().join("journal");
        let written = std::fs::read(&journal).unwrap_or_default();
        assert!(!has(&written, "label-29-"), "there is no room for it");
        let last = engine.get(ended[29].0).unwrap();
        let state = engine.journal_state().unwrap();
        assert_eq!(last.is_recorded(), Some(false));
        let why = "No space left on device (os error 28)".to_owned();
        assert_eq!(state.borrow().trouble, Some(why));
        assert!(state.borrow().waiting_bytes > 0);
        drop(filler);
        if full_from_the_start {
            finish(&engine.start(home.launch("exit 0")).await.unwrap().process).await;
        } else {
            engine.sweep(tokio::time::Instant::now());
        }
        assert!(has(&home.journal(), "label-29-"));
        assert_eq!(last.is_recorded(), Some(true));
        assert_eq!(*state.borrow(), JournalState::default());
        close(engine).await;
        let engine = home.open();
        assert_eq!(engine.restored().torn_bytes, 0);
        assert_eq!(engine.get(last.id()).unwrap().is_recorded(), Some(true));
        for (id, ending) in &ended {
            let snapshot = engine.get(*id).unwrap().snapshot();
            assert_eq!(**snapshot.ending().unwrap(), *ending);
        }
        engine.forget(ended[0].0).unwrap();
        let count = engine.restored().ended - 1;
        close(engine).await;
        // A journal that cannot be rewritten is continued.
        let filler = Filler::fill(home.state.path());
        let engine = home.open();
        assert_eq!(engine.restored().ended, count);
        drop(filler);
        finish(&engine.start(home.launch("exit 0")).await.unwrap().process).await;
        close(engine).await;
        let engine = home.open();
        assert_eq!((engine.restored().ended, engine.restored().lost), (count + 1, 0));
        close(engine).await;
    }
}
