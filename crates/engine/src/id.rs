//! Process ids: version 7 UUIDs, so that they sort by time.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

/// Written in lower case with dashes. A later process of this engine, or of one that continues its
/// history, has a greater id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(Uuid);

/// Generates ids, each greater than the one before, even if the clock is set back.
#[derive(Debug)]
pub(crate) struct Ids {
    /// Locked only for a comparison.
    newest: Mutex<Id>,
}

/// The bits below the milliseconds of unix time, which are the first 48 of 128.
const BELOW_TIME: u32 = 80;

impl Id {
    /// A new unique id.
    pub(crate) fn fresh() -> Self {
        Self(Uuid::now_v7())
    }

    pub(crate) fn from_number(number: u128) -> Self {
        Self(Uuid::from_u128(number))
    }

    pub(crate) fn number(self) -> u128 {
        self.0.as_u128()
    }
}

impl Ids {
    /// Generates ids greater than `newest`.
    pub(crate) fn after(newest: Option<Id>) -> Self {
        Self { newest: Mutex::new(newest.unwrap_or(Id(Uuid::nil()))) }
    }

    pub(crate) fn next(&self) -> Id {
        // The update is one step, so a poisoned lock is usable.
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        *newest = next_after(*newest, Id::fresh());
        *newest
    }
}

/// The fresh id or, if the clock was set back, the same one a millisecond after the newest.
fn next_after(newest: Id, fresh: Id) -> Id {
    if fresh > newest {
        return fresh;
    }
    let later = (newest.number() >> BELOW_TIME) + 1;
    let below = fresh.number() & ((1 << BELOW_TIME) - 1);
    Id::from_number(later << BELOW_TIME | below)
}

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(out)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}

impl FromStr for Id {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        Uuid::try_parse(text).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_makes_no_id_smaller() {
        let fresh = Id::fresh();
        let hour = 3_600_000_u128 << BELOW_TIME;
        let ahead = Id::from_number(fresh.number() + hour);
        let next = next_after(ahead, fresh);
        assert!(next > ahead);
        assert_eq!((next.0.get_version_num(), next.0.get_variant()), (7, uuid::Variant::RFC4122));
        assert_eq!(next_after(fresh, ahead), ahead);
        let ids = Ids::after(Some(ahead));
        let given: Vec<Id> = (0..100).map(|_| ids.next()).collect();
        assert!(given[0] > ahead && given.is_sorted());
    }
}
