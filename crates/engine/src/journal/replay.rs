//! What a journal comes to, read from its beginning.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::SystemTime;

use lastbyte_output::log::{Extent, ShortLog};

use super::record::{Launched, Record};
use crate::Id;
use crate::process::ending::Ending;

/// What is remembered of a process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Past {
    pub(crate) launched: Launched,
    /// `None` when the server went in the middle of its start.
    pub(crate) pid: Option<i32>,
    pub(crate) timed_out_at: Option<SystemTime>,
    /// All of its log, where its record has it.
    pub(crate) short: Option<ShortLog>,
    /// With the extent that its output ended in; `None` when the server went before it.
    pub(crate) ended: Option<(Ending, Extent)>,
}

/// All of them, oldest first, and what could not be read.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    pub(crate) pasts: BTreeMap<Id, Past>,
    /// Cut off at the end, where a write was torn or the file is damaged.
    pub(crate) torn_bytes: u64,
    /// Whole records that this version does not know.
    pub(crate) unknown: usize,
    /// Whether they have output of a process that was forgotten.
    pub(crate) forgotten_output: bool,
    /// Each log file and its process, even if that one is gone.
    pub(crate) logs: HashMap<u64, Id>,
    /// Each cgroup and the last process launched in it.
    pub(crate) last_users: HashMap<PathBuf, Id>,
}

impl Past {
    fn new(launched: Launched) -> Self {
        Self { launched, pid: None, timed_out_at: None, short: None, ended: None }
    }

    /// The number of the file that its log is in.
    pub(crate) fn log(&self) -> Option<u64> {
        self.launched.log.filter(|_| self.short.is_none())
    }

    fn records(&self, id: Id) -> impl Iterator<Item = Record> + use<> {
        let Self { launched, pid, timed_out_at, short, ended } = self;
        let ended = ended.as_ref();
        let records = [
            Some(Record::Launched(Box::new(launched.clone()))),
            pid.map(|pid| Record::Started { id, pid }),
            timed_out_at.map(|at| Record::TimedOut { id, at }),
            ended.map(|(ending, extent)| Record::ended(id, ending, extent, short.as_ref())),
        ];
        records.into_iter().flatten()
    }
}

impl Replayed {
    pub(super) fn of<'a>(payloads: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut replayed = Self::default();
        for payload in payloads {
            match Record::decode(payload) {
                Some(record) => replayed.take(record),
                None => replayed.unknown += 1,
            }
        }
        replayed.give_up();
        replayed
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Launched(launched) => {
                let id = launched.spec.id;
                self.last_users.extend(launched.cgroup.clone().map(|cgroup| (cgroup, id)));
                self.logs.extend(launched.log.map(|log| (log, id)));
                self.pasts.insert(id, Past::new(*launched));
            }
            Record::Started { id, pid } => {
                self.pasts.entry(id).and_modify(|past| past.pid = Some(pid));
            }
            Record::TimedOut { id, at } => {
                self.pasts.entry(id).and_modify(|past| past.timed_out_at = Some(at));
            }
            Record::Ended { id, ending, dropped, short } => {
                let extent = Extent { len: ending.final_len, dropped };
                self.pasts.entry(id).and_modify(|past| {
                    (past.ended, past.short) = (Some((*ending, extent)), short);
                });
            }
            Record::Failed { id } | Record::Forgotten { id } => {
                let short = self.pasts.remove(&id).and_then(|past| past.short);
                self.forgotten_output |= short.is_some_and(|short| !short.is_empty());
            }
        }
    }

    /// Takes cgroups from all but the last process launched in them.
    fn give_up(&mut self) {
        for (id, Past { launched, .. }) in &mut self.pasts {
            launched.cgroup.take_if(|cgroup| self.last_users.get(cgroup) != Some(id));
        }
    }

    /// The fewest records that say the same.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        self.pasts.iter().flat_map(|(id, past)| past.records(*id))
    }
}
