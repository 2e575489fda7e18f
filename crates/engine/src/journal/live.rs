//! Which records are of interest, and what they take.

use std::collections::HashMap;

use super::fingerprint::HashKey;
use super::frames::frame;
use super::record::Record;
use crate::Id;

/// What the records of each process take, as long as they are of interest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Live {
    weights: HashMap<Id, Weight>,
    bytes: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Weight {
    bytes: u64,
    /// Output is among them.
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
        self.weights.contains_key(&id)
    }

    /// What all of them take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes a record of so many bytes into account; says whether output is of no interest now.
    pub(super) fn count(&mut self, record: &Record, bytes: u64) -> bool {
        let id = record.id();
        match record {
            Record::Launched(_)
            | Record::Started { .. }
            | Record::Ended { .. }
            | Record::TimedOut { .. } => {
                let weight = self.weights.entry(id).or_default();
                weight.bytes += bytes;
                weight.output |= has_output(record);
                self.bytes += bytes;
                false
            }
            Record::Failed { .. } | Record::Forgotten { .. } => {
                let gone = self.weights.remove(&id).unwrap_or_default();
                self.bytes -= gone.bytes;
                gone.output
            }
        }
    }
}

fn has_output(record: &Record) -> bool {
    matches!(record, Record::Ended { short: Some(short), .. } if !short.is_empty())
}
