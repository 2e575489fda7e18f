//! What an earlier engine has left: its processes, as far as the journal and the files know them.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::SystemTime;

use lastbyte_output::log::{Dropped, Extent, Place, Reader, Recovered, ShortLog};
use lastbyte_sys::cgroup::Claims;
use lastbyte_sys::registry::Inherited;
use tokio::sync::watch;
use tokio::time::Instant;

use super::adopt::log_streams;
use super::process_map::Keyed;
use super::start::Started;
use super::take_over::{TakenOver, give_up};
use super::{Inner, logs};
use crate::Id;
use crate::clock::{AgeFrom, unix_ms, wall_clock_age};
use crate::journal::{Launched, Recorded, Replayed, SetAside};
use crate::launch::Spec;
use crate::owner::owner_end::OwnerHandle;
use crate::process::ending::{End, Ending, Kept, LostWhy, Times};
use crate::process::terminal_size::TerminalSize;
use crate::process::{Process, Shared};

/// What an engine found when it was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restored {
    /// Processes that had ended, lost ones of earlier restarts among them.
    pub ended: usize,
    /// Processes that go on.
    pub taken_over: usize,
    /// Processes whose pipes were lost.
    pub cut: usize,
    /// Of those, input that may not have arrived, from where to where.
    pub uncertain_input: Vec<(Id, (u64, u64))>,
    /// Processes that had not: they are lost, and what is left of their trees lives on.
    pub lost: usize,
    /// Cut off the end of the journal, where a write was torn or the file is damaged.
    pub torn_bytes: u64,
    /// Records of the journal that this version does not know, and left out.
    pub unknown_records: usize,
    /// Files of processes that the journal calls forgotten, which were removed.
    pub removed_files: usize,
    /// Files that no record names, and journals that could not be read: how many were set aside,
    /// and in which folder.
    pub set_aside: Option<(PathBuf, usize)>,
}

impl Inner {
    /// Enters everybody of the past into the map. The journal is told who was lost, and whose output
    /// did not reach the disk before the machine went down.
    pub(super) fn restore(
        &self,
        replayed: Replayed,
        mut aside: SetAside,
        inherited: Vec<Inherited>,
        unsynced_since: Option<SystemTime>,
    ) -> io::Result<Restored> {
        // Several have no id yet, or none any more.
        let by_id = inherited.into_iter().map(|found| (Id::from_number(found.place.id()), found));
        let (inherited, unknown): (Vec<_>, Vec<_>) =
            by_id.partition(|(id, _)| replayed.pasts.contains_key(id));
        let mut inherited: HashMap<Id, Inherited> = inherited.into_iter().collect();
        let mut restored = Restored {
            torn_bytes: replayed.torn_bytes,
            unknown_records: replayed.unknown,
            ..Restored::default()
        };
        if self.journal.is_some() {
            restored.removed_files = logs::clear(&self.log_folder(), &replayed, &mut aside)?;
            restored.set_aside = aside.found();
        }
        let (found, today) = (Instant::now(), SystemTime::now());
        let oldest = self.settings.retention.oldest_at_start();
        let mut claims = Claims::default();
        for (id, past) in replayed.pasts {
            let cgroup = past.launched.cgroup.as_ref().and_then(|cgroup| claims.claim(cgroup));
            let cgroup = match inherited.remove(&id) {
                None => cgroup,
                Some(found) => {
                    restored.cut += usize::from(found.lost);
                    match self.take_over(&past, cgroup, found)? {
                        TakenOver::Process(process) => {
                            restored.taken_over += 1;
                            let stdin = process.stdin().map(|stdin| *stdin.borrow());
                            let uncertain = stdin.and_then(|stdin| stdin.uncertain);
                            restored.uncertain_input.extend(uncertain.map(|range| (id, range)));
                            self.enter_again(process, &past.launched);
                            continue;
                        }
                        TakenOver::NeverRan => continue,
                        TakenOver::Nothing(cgroup) => cgroup,
                    }
                }
            };
            let (pid, ended) = (past.pid.unwrap_or(0), past.ended.as_ref());
            let tree = if ended.is_some_and(|(ending, _)| ending.was_seen()) {
                self.trees.regrow(pid, id, cgroup)
            } else {
                self.trees.regrow_lost(pid, id, cgroup)
            };
            let place = past.log().map(|log| Place::new(&self.log_folder(), log));
            let short = past.short.clone().unwrap_or_default();
            let recorded = Arc::new(self.recorded());
            let ended = past.ended.as_ref().map(|(_, extent)| extent.clone()).unwrap_or_default();
            let recovered = match &place {
                // A log that cannot be looked at now may be read later, or say why not.
                Some(place) => place
                    .recover(&ended, unsynced_since)
                    .unwrap_or(Recovered { extent: ended.clone(), disk_bytes: 0 }),
                None => Recovered { extent: ended.left_in(short.len()), disk_bytes: short.len() },
            };
            let ending = match past.ended.clone() {
                Some((ending, _)) => {
                    restored.ended += 1;
                    let ending = still_kept(ending, &ended, &recovered.extent);
                    if unsynced_since.is_some() && ended.dropped != recovered.extent.dropped {
                        self.write_ending(id, &ending, &recovered.extent, &recorded);
                    }
                    ending
                }
                None => {
                    restored.lost += 1;
                    self.lose(&past.launched, &recovered.extent, &recorded)
                }
            };
            let age = wall_clock_age(ending.times.known_at(), today, oldest);
            let share = Arc::new(self.disk.share());
            share.set(recovered.disk_bytes);
            let process = Process::new(Shared {
                terminal: TerminalSize::new(None, past.launched.spec.streams),
                // Nobody owns it any more, and a restart stops nobody.
                clients: None,
                owner: OwnerHandle::of_ended(ending, recovered.extent, past.timed_out_at),
                stdin: None,
                tree,
                log: reader(place, short, &past.launched.spec),
                readers: Arc::clone(&self.readers),
                share,
                stops: self.stops.clone(),
                holds: None,
                first_hold: Mutex::new(None),
                keyboard: OnceLock::new(),
                keyboards: AtomicU64::new(0),
                recorded,
                age_from: AgeFrom::Restart { found, age },
                spec: Arc::clone(&past.launched.spec),
                pid: past.pid.unwrap_or(0),
            });
            self.enter_again(process, &past.launched);
        }
        if let Some(registry) = self.registry {
            unknown.into_iter().for_each(|(_, found)| give_up(registry, found));
        }
        Ok(restored)
    }

    /// Takes back launches whose command never ran: their keys can be used again.
    pub(super) fn take_back_unstarted(&self, replayed: &mut Replayed) -> io::Result<()> {
        let (Some(gates), Some(journal)) = (&self.gates, &self.journal) else { return Ok(()) };
        replayed.pasts.retain(|id, past| {
            let unseen = past.pid.is_none() && past.ended.is_none();
            let never_ran = unseen && gates.remove(*id);
            if never_ran {
                journal.failed(*id);
            }
            !never_ran
        });
        gates.clear()
    }

    /// The ending of a process that nobody saw end, written down.
    fn lose(&self, launched: &Launched, extent: &Extent, recorded: &Recorded) -> Ending {
        let ending = lost(launched.spec.started, extent.len, SystemTime::now());
        self.write_ending(launched.spec.id, &ending, extent, recorded);
        ending
    }

    fn write_ending(&self, id: Id, ending: &Ending, extent: &Extent, recorded: &Recorded) {
        self.journal.iter().for_each(|journal| journal.ended(id, ending, extent, recorded));
    }

    pub(super) fn recorded(&self) -> Recorded {
        self.journal.as_ref().map(|journal| journal.recorded()).unwrap_or_default()
    }

    fn enter_again(&self, process: Process, launched: &Launched) {
        let mut processes = self.processes();
        processes.add(&process);
        if let Some((key, fingerprint)) = launched.spec.key.clone().zip(launched.fingerprint) {
            let started = Started { process, attached: false, warnings: Vec::new() };
            let (_, outcome) = watch::channel(Some(Ok(started)));
            processes.reserve(key, Keyed { fingerprint, fields: None, outcome });
        }
    }
}

/// The ending, with what its log has lost since it was written down.
fn still_kept(ending: Ending, then: &Extent, now: &Extent) -> Ending {
    let below = |range: &Range<u64>| range.start.min(then.len)..range.end.min(then.len);
    let dropped = Dropped::covering(now.dropped.ranges().iter().map(below));
    match ending.kept {
        // It says already that not all of it may be there.
        Kept::Unknown | Kept::Failed { .. } => ending,
        Kept::Whole | Kept::Dropped(_) => Ending { kept: Kept::new(&dropped, None), ..ending },
    }
}

fn lost(started: SystemTime, stored: u64, now: SystemTime) -> Ending {
    let after = now.duration_since(started).unwrap_or_default();
    let times = Times { started, end: End::Unseen { found: now, after } };
    Ending::lost(LostWhy::ServerGone, stored, times)
}

/// Of its file, or of what its record has.
fn reader(place: Option<Place>, short: ShortLog, spec: &Spec) -> Reader {
    let (streams, started) = (log_streams(spec.streams), unix_ms(spec.started));
    match place {
        Some(place) => Reader::of_files(place, streams, started),
        None => Reader::of_short(short, streams, started),
    }
}
