//! What a journal comes to, read from its beginning.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::SystemTime;

use lastbyte_output::log::{Extent, ShortLog};

use super::record::{Launched, Record};
use crate::Id;
use crate::ending::Ending;

/// What is remembered of a process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Past {
    pub(crate) launched: Launched,
    /// `None` when the server went in the middle of its start.
    pub(crate) pid: Option<i32>,
    pub(crate) timed_out_at: Option<SystemTime>,
    /// What its log said, unless that is in a file.
    pub(crate) short: ShortLog,
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
}

/// Who was launched last into which leaf, whatever became of it. Leaves are used again and again:
/// whoever lives in one is of the tree that had it last.
type Leaves = HashMap<PathBuf, Id>;

impl Past {
    fn of(launched: Launched) -> Self {
        let short = ShortLog::default();
        Self { launched, pid: None, timed_out_at: None, short, ended: None }
    }
}

impl Replayed {
    pub(super) fn of<'a>(payloads: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let (mut replayed, mut leaves) = (Self::default(), Leaves::new());
        for payload in payloads {
            match Record::decode(payload) {
                Some(record) => replayed.take(record, &mut leaves),
                None => replayed.unknown += 1,
            }
        }
        replayed.give_up(&leaves);
        replayed
    }

    fn take(&mut self, record: Record, leaves: &mut Leaves) {
        match record {
            Record::Launched(launched) => {
                if let Some(leaf) = &launched.leaf {
                    leaves.insert(leaf.clone(), launched.id);
                }
                self.pasts.insert(launched.id, Past::of(*launched));
            }
            Record::Started { id, pid } => {
                self.pasts.entry(id).and_modify(|past| past.pid = Some(pid));
            }
            Record::TimedOut { id, at } => {
                self.pasts.entry(id).and_modify(|past| past.timed_out_at = Some(at));
            }
            Record::Said { id, more } => {
                self.pasts.entry(id).and_modify(|past| past.short.append(&more));
            }
            Record::Moved { id } => {
                self.pasts.entry(id).and_modify(|past| past.short = ShortLog::default());
            }
            Record::Ended { id, ending, dropped } => {
                let extent = Extent { len: ending.final_len, dropped };
                self.pasts.entry(id).and_modify(|past| past.ended = Some((*ending, extent)));
            }
            Record::Failed { id } | Record::Forgotten { id } => _ = self.pasts.remove(&id),
        }
    }

    /// Leaves nobody a leaf that somebody else was launched into later.
    fn give_up(&mut self, leaves: &Leaves) {
        for (id, past) in &mut self.pasts {
            past.launched.leaf.take_if(|leaf| leaves.get(leaf) != Some(id));
        }
    }

    /// The fewest records that say the same.
    pub(super) fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for (id, Past { launched, pid, timed_out_at, short, ended }) in &self.pasts {
            records.push(Record::Launched(Box::new(launched.clone())));
            records.extend(pid.map(|pid| Record::Started { id: *id, pid }));
            records.extend(timed_out_at.map(|at| Record::TimedOut { id: *id, at }));
            let said = Some(short).filter(|short| !short.is_empty()).cloned();
            records.extend(said.map(|more| Record::Said { id: *id, more }));
            let ended = ended.as_ref();
            records.extend(ended.map(|(ending, extent)| Record::ended(*id, ending, extent)));
        }
        records
    }
}
