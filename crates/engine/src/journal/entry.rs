//! What one process writes into the journal.

use std::sync::Arc;
use std::time::SystemTime;

use lastbyte_output::log::{Extent, ShortLog};

use super::file::Journal;
use super::record::{Launched, Record};
use super::state::Recorded;
use crate::Id;
use crate::process::ending::Ending;

/// A launch that was written down. Dropped before its ending it is taken back: nothing came of it.
#[derive(Debug)]
pub(crate) struct Entry {
    id: Id,
    /// Let go of at the ending, so that a program that holds late output open does not hold the journal.
    journal: Option<Arc<Journal>>,
    recorded: Arc<Recorded>,
}

impl Entry {
    /// Writes a launch down, before there is a process.
    pub(crate) fn launched(journal: &Arc<Journal>, launched: Launched) -> Self {
        let (id, recorded) = (launched.spec.id, Arc::new(journal.recorded()));
        let entry = Self { id, journal: Some(Arc::clone(journal)), recorded };
        entry.append(&Record::Launched(Box::new(launched)));
        entry
    }

    /// Goes on with a launch that an earlier worker has written down.
    pub(crate) fn again(journal: &Arc<Journal>, id: Id) -> Self {
        Self { id, journal: Some(Arc::clone(journal)), recorded: Arc::new(journal.recorded()) }
    }

    /// Whether what it has written is on disk.
    pub(crate) fn recorded(&self) -> Arc<Recorded> {
        Arc::clone(&self.recorded)
    }

    pub(crate) fn started(&self, pid: i32) {
        self.append(&Record::Started { id: self.id, pid });
    }

    pub(crate) fn timed_out(&self, at: SystemTime) {
        self.append(&Record::TimedOut { id: self.id, at });
    }

    /// Written before anybody sees it: an ending that was seen once is never taken back.
    pub(crate) fn ended(mut self, ending: &Ending, extent: &Extent, short: Option<&ShortLog>) {
        self.append(&Record::ended(self.id, ending, extent, short));
        self.journal = None;
    }

    fn append(&self, record: &Record) {
        self.journal.iter().for_each(|journal| self.recorded.append(journal.append(record)));
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.append(&Record::Failed { id: self.id });
    }
}
