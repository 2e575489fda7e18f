//! A state folder and an anchor that outlive their engines.

use std::fs::DirEntry;
use std::path::Path;

use lastbyte_engine::{
    Ending, Engine, EnvEdit, History, Launch, Process, Settings, Snapshot, Survivors,
};
use lastbyte_output::log::Piece;
use lastbyte_testkit::{Anchor, eventually, script};

use crate::fixture::patiently;

/// Ends its helpers and removes its files when dropped.
pub struct Home {
    pub anchor: Anchor,
    pub state: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Self {
        Self { anchor: Anchor::listen(), state: tempfile::tempdir().unwrap() }
    }

    pub fn settings(&self) -> Settings {
        Settings { history: History::Journal, ..Settings::new(self.state.path()) }
    }

    /// An engine that continues with the state of the last one, which may still be closing.
    pub fn open(&self) -> Engine {
        open(self.settings())
    }

    pub fn launch(&self, actions: &str) -> Launch {
        let (name, value) = self.anchor.env();
        Launch { env: vec![EnvEdit::Set(name.into(), value)], ..Launch::argv(script(actions)) }
    }

    pub fn journal(&self) -> Vec<u8> {
        std::fs::read(self.state.path().join("journal")).unwrap()
    }
}

pub fn open(settings: Settings) -> Engine {
    let mut opened = None;
    eventually("the engine before is gone", || {
        match Engine::new(settings.clone()) {
            Ok(engine) => opened = Some(engine),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ResourceBusy, "{error}"),
        }
        opened.is_some()
    });
    opened.unwrap()
}

/// Closes an engine and leaves survivors alone.
pub async fn close(engine: Engine) {
    patiently("close", engine.close(Survivors::Leave)).await;
}

/// The names of the empty log files in a folder. An index may be beside one, after a slow command.
pub fn empty_files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    // A file may have been removed since it was listed.
    let is_empty = |entry: &DirEntry| entry.metadata().is_ok_and(|file| file.len() == 0);
    let mut names: Vec<_> =
        entries.filter(is_empty).map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".log"));
    names.sort();
    names
}

/// All of a log, including dropped ranges.
fn pieces(process: &Process, snapshot: &Snapshot) -> Vec<(Piece, Vec<u8>)> {
    let (reader, mut at, mut found) = (process.reader(), 0, Vec::new());
    loop {
        let mut bytes = vec![0; 100_000];
        let piece = reader.read(snapshot, at, &mut bytes).unwrap();
        at = match &piece {
            Piece::Bytes(count) => at + *count as u64,
            Piece::Dropped(range) => range.end,
            Piece::End => return found,
        };
        found.push((piece, bytes));
    }
}

/// What must be the same after a restart: ending, output, and what is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    spec: lastbyte_engine::Spec,
    ending: Ending,
    snapshot: Snapshot,
    pieces: Vec<(Piece, Vec<u8>)>,
}

pub fn facts(process: &Process) -> Facts {
    let snapshot = process.snapshot();
    let ending = Ending::clone(snapshot.ending().expect("it has ended"));
    let pieces = pieces(process, &snapshot);
    Facts { spec: process.spec().as_ref().clone(), ending, snapshot, pieces }
}
