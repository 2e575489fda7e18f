//! The replicated bucket: a write is acknowledged once it is committed. A leader that dies takes
//! some of the writes with it that were not acknowledged, and others are there without a word.

use std::collections::BTreeMap;

use lastbyte_fleet::{Claim, Entry, Revision};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    Key(usize),
    Node(usize),
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Claim(Claim),
    Entry(Entry),
    Removed,
}

/// A write on the last revision of its name, or on none.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub(crate) name: Name,
    pub(crate) value: Value,
    pub(crate) on: Option<Revision>,
}

/// A committed write.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) at: u64,
    pub(crate) name: Name,
    pub(crate) value: Value,
}

#[derive(Debug, Default)]
pub(crate) struct Bucket {
    /// Revision 1 is the first.
    pub(crate) log: Vec<Record>,
    latest: BTreeMap<Name, usize>,
    pub(crate) down_until: u64,
    /// How many leaders there were: a write of an older one has lost its client.
    pub(crate) term: u64,
}

impl Bucket {
    pub(crate) fn commit(&mut self, write: Write, now: u64) -> Option<Revision> {
        let there = self.read(&write.name, u64::MAX).map(|(_, revision)| revision);
        if there != write.on {
            return None;
        }
        let Write { name, value, .. } = write;
        Some(self.append(name, value, now))
    }

    fn append(&mut self, name: Name, value: Value, now: u64) -> Revision {
        self.latest.insert(name.clone(), self.log.len());
        self.log.push(Record { at: now, name, value });
        Revision(self.log.len() as u64)
    }

    /// What a server shows that has all writes until `at`.
    pub(crate) fn read(&self, name: &Name, at: u64) -> Option<(Value, Revision)> {
        let mut index = *self.latest.get(name)?;
        while self.log[index].at > at {
            index = self.log[..index].iter().rposition(|record| record.name == *name)?;
        }
        match &self.log[index].value {
            Value::Removed => None,
            value @ (Value::Claim(_) | Value::Entry(_)) => {
                Some((value.clone(), Revision(index as u64 + 1)))
            }
        }
    }

    pub(crate) fn claim(&self, key: usize) -> Option<Claim> {
        match self.read(&Name::Key(key), u64::MAX)?.0 {
            Value::Claim(claim) => Some(claim),
            Value::Entry(_) | Value::Removed => None,
        }
    }

    /// An entry that was not written again since expires.
    pub(crate) fn expire(&mut self, name: &Name, revision: Revision, now: u64) {
        if self.read(name, u64::MAX).is_some_and(|(_, there)| there == revision) {
            self.append(name.clone(), Value::Removed, now);
        }
    }
}
