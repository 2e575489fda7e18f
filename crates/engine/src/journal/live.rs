//! Which processes still have records, and how large these are.

use std::collections::HashMap;

use super::fingerprint::HashKey;
use super::frames::frame;
use super::record::Record;
use crate::Id;

/// The size of the records of each process that is not forgotten.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Live {
    sizes: HashMap<Id, Size>,
    bytes: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Size {
    bytes: u64,
    /// They include output.
    output: bool,
}

impl Live {
    pub(super) fn of(key: HashKey, records: &[Record]) -> Self {
        let mut live = Self::default();
        for record in records {
            live.count(record, frame(key, &record.encode()).len() as u64);
        }
        live
    }

    pub(super) fn has(&self, id: Id) -> bool {
        self.sizes.contains_key(&id)
    }

    /// The size of all of them.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts a record of this size; returns whether it forgets output.
    pub(super) fn count(&mut self, record: &Record, bytes: u64) -> bool {
        let id = record.id();
        match record {
            Record::Launched(_)
            | Record::Started { .. }
            | Record::Ended { .. }
            | Record::TimedOut { .. } => {
                let size = self.sizes.entry(id).or_default();
                size.bytes += bytes;
                size.output |= has_output(record);
                self.bytes += bytes;
                false
            }
            Record::Failed { .. } | Record::Forgotten { .. } => {
                let gone = self.sizes.remove(&id).unwrap_or_default();
                self.bytes -= gone.bytes;
                gone.output
            }
        }
    }
}

fn has_output(record: &Record) -> bool {
    matches!(record, Record::Ended { short: Some(short), .. } if !short.is_empty())
}
