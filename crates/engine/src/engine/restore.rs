//! What an earlier engine has left: its processes, as far as the journal and the files know them.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::mem;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use lastbyte_output::log::{Dropped, Extent, Place, Reader, Recovered, ShortLog, Spares};
use lastbyte_sys::cgroup::Claims;
use tokio::sync::watch;

use super::Inner;
use super::adopt::log_streams;
use super::registry::Keyed;
use super::start::Started;
use crate::Id;
use crate::clock::unix_ms;
use crate::desk::Counter;
use crate::ending::{Ending, Kept, LostWhy, Times};
use crate::journal::{Launched, Past, Replayed, damaged_path};
use crate::process::{About, Process, Shared};

/// What an engine found when it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restored {
    /// Processes that had ended, lost ones of earlier restarts among them.
    pub ended: usize,
    /// Processes that had not: they are lost, and what is left of their trees lives on.
    pub lost: usize,
    /// Cut off the end of the journal, where a write was torn or the file is damaged.
    pub torn_bytes: u64,
    /// Records of the journal that this version does not know, and left out.
    pub unknown_records: usize,
    /// Files that no record names, and that were removed.
    pub removed_files: usize,
}

impl Inner {
    /// Enters everybody of the past into the map. The journal is told who was lost.
    pub(super) fn restore(&self, replayed: Replayed) -> io::Result<Restored> {
        let mut restored = Restored {
            torn_bytes: replayed.torn_bytes,
            unknown_records: replayed.unknown,
            ..Restored::default()
        };
        // A journal that is not whole may have lost the record that names a file.
        let whole = replayed.torn_bytes == 0 && replayed.unknown == 0;
        if self.journal.is_some() && whole && !damaged_path(&self.settings.state).exists() {
            restored.removed_files = remove_unnamed(&self.logs(), &replayed)?;
        }
        let mut claims = Claims::default();
        for (id, mut past) in replayed.pasts {
            let short = mem::take(&mut past.short);
            let leaf = past.launched.leaf.as_ref().and_then(|leaf| claims.claim(leaf));
            let tree = self.trees.regrow(past.pid.unwrap_or(0), id, leaf);
            let place = Place::new(&self.logs(), &id.to_string());
            let (ending, recovered) = match past.ended.clone() {
                Some((ending, extent)) => {
                    restored.ended += 1;
                    // A log that cannot be looked at now may be read later, or say why not.
                    let as_it_was = Recovered { extent: extent.clone(), ..Recovered::default() };
                    let recovered = place.recover(&extent, short).unwrap_or(as_it_was);
                    (still_kept(ending, &extent, &recovered.extent), recovered)
                }
                None => {
                    restored.lost += 1;
                    self.lose(&past.launched, &place, short)
                }
            };
            let share = Arc::new(self.disk.share());
            share.set(recovered.disk_bytes);
            let process = Process::new(Shared {
                counter: Counter::of_ended(ending, recovered.extent, past.timed_out_at),
                stdin: None,
                tree,
                log: reader(&place, &past.launched, recovered.short),
                readers: Arc::clone(&self.readers),
                place,
                share,
                stops: self.stops.clone(),
                pins: None,
                first_pin: Mutex::new(None),
                about: about(&past),
            });
            self.enter_again(process, &past.launched);
        }
        Ok(restored)
    }

    /// Gives a process that nobody saw end the ending of one that is lost.
    fn lose(&self, launched: &Launched, place: &Place, short: ShortLog) -> (Ending, Recovered) {
        let recovered = place.recover_lost(short).unwrap_or_default();
        let ending = lost(launched.started, &recovered.extent, SystemTime::now());
        let journal = self.journal.iter();
        journal.for_each(|journal| journal.ended(launched.id, &ending, &recovered.extent));
        (ending, recovered)
    }

    fn enter_again(&self, process: Process, launched: &Launched) {
        let mut registry = self.registry();
        registry.add(&process);
        if let Some((key, fingerprint)) = launched.key.clone() {
            let started = Started { process, attached: false, warnings: Vec::new() };
            let (_, outcome) = watch::channel(Some(Ok(started)));
            registry.reserve(key, Keyed { fingerprint, outcome });
        }
    }
}

/// The ending, with what its log has lost since it was written down.
fn still_kept(ending: Ending, then: &Extent, now: &Extent) -> Ending {
    let below = |range: &Range<u64>| range.start.min(then.len)..range.end.min(then.len);
    let dropped = Dropped::covering(now.dropped.ranges().iter().map(below));
    match ending.kept {
        // It says already that the disk did not take all of it.
        Kept::Failed { .. } => ending,
        Kept::Whole | Kept::Dropped(_) => Ending { kept: Kept::of(&dropped, None), ..ending },
    }
}

/// When it exited nobody knows: told is the time at which that was found.
fn lost(started: SystemTime, extent: &Extent, now: SystemTime) -> Ending {
    let ran = now.duration_since(started).unwrap_or_default();
    let times = Times { started, exited: now, ended: now, ran, drained: Duration::ZERO };
    Ending::lost(LostWhy::ServerGone, extent, times)
}

fn reader(place: &Place, launched: &Launched, short: Option<ShortLog>) -> Reader {
    let (streams, started) = (log_streams(launched.streams), unix_ms(launched.started));
    match short {
        Some(short) => Reader::of_short(place.clone(), streams, started, short),
        None => Reader::of_files(place.clone(), streams, started),
    }
}

fn about(past: &Past) -> About {
    let Launched {
        id, program, cwd, streams, session, key, labels, started, stop, sandbox, ..
    } = &past.launched;
    About {
        id: *id,
        pid: past.pid.unwrap_or(0),
        program: program.clone(),
        cwd: cwd.clone(),
        streams: *streams,
        session: session.clone(),
        key: key.as_ref().map(|(key, _)| key.clone()),
        labels: labels.clone(),
        started: *started,
        stop: *stop,
        sandbox: sandbox.clone(),
    }
}

/// Logs of processes that were forgotten, of which it tells how many, and spares that nobody took.
fn remove_unnamed(logs: &Path, replayed: &Replayed) -> io::Result<usize> {
    let named: HashSet<String> = replayed.pasts.keys().map(Id::to_string).collect();
    let mut removed = 0;
    for entry in fs::read_dir(logs)? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        if name.is_some_and(|name| named.contains(name)) {
            continue;
        }
        // One that cannot be removed now is for the next start to try.
        if fs::remove_file(&path).is_ok() && !Spares::is_one(&path) {
            removed += 1;
        }
    }
    Ok(removed)
}
