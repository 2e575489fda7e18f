//! Process ids: version 7 UUIDs, so that they sort by time.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

/// Written in lower case with dashes. A later process of this engine, or of one that continues its
/// history, has a greater id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(Uuid);

/// 24 bits that all ids of an engine can share, so that others know by an id where it is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdTag(u32);

/// Generates ids, each greater than the one before, even if the clock is set back.
#[derive(Debug)]
pub(crate) struct Ids {
    /// Locked only for a comparison.
    newest: Mutex<Id>,
    tag: Option<IdTag>,
}

/// The bits below the milliseconds of unix time, which are the first 48 of 128.
const BELOW_TIME: u32 = 80;
/// The bits below a tag: the last eight characters, which people use instead of the whole id.
const BELOW_TAG: u32 = 32;
const TAG_BITS: u32 = 24;

impl Id {
    /// A new unique id.
    pub(crate) fn fresh() -> Self {
        Self(Uuid::now_v7())
    }

    /// Of an engine that has one; of any other, random bits.
    pub fn tag(self) -> IdTag {
        IdTag::new((self.number() >> BELOW_TAG) as u32)
    }

    fn tagged(self, IdTag(tag): IdTag) -> Self {
        let mask = ((1 << TAG_BITS) - 1) << BELOW_TAG;
        Self::from_number(self.number() & !mask | u128::from(tag) << BELOW_TAG)
    }

    pub(crate) fn from_number(number: u128) -> Self {
        Self(Uuid::from_u128(number))
    }

    pub(crate) fn number(self) -> u128 {
        self.0.as_u128()
    }
}

impl IdTag {
    /// The lowest 24 bits.
    pub fn new(bits: u32) -> Self {
        Self(bits & ((1 << TAG_BITS) - 1))
    }
}

impl Ids {
    /// Generates ids greater than `newest`, all with this tag.
    pub(crate) fn after(newest: Option<Id>, tag: Option<IdTag>) -> Self {
        Self { newest: Mutex::new(newest.unwrap_or(Id(Uuid::nil()))), tag }
    }

    pub(crate) fn next(&self) -> Id {
        // The update is one step, so a poisoned lock is usable.
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        *newest = match self.tag {
            None => next_after(*newest, Id::fresh()),
            Some(tag) => next_tagged(*newest, Id::fresh().tagged(tag)),
        };
        *newest
    }
}

/// Of two ids in one millisecond the bits above the tag are often the same: then, and if the clock was set back, the
/// second one goes on from the first, a random step further.
fn next_tagged(newest: Id, fresh: Id) -> Id {
    let step = 1 + (fresh.number() & 0xffff);
    let beside = Id::from_number(newest.number() + step);
    let has_room = beside.number() >> BELOW_TAG == newest.number() >> BELOW_TAG;
    let goes_on = newest.tag() == fresh.tag() && has_room;
    if fresh <= newest && goes_on { beside } else { next_after(newest, fresh) }
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
        let ids = Ids::after(Some(ahead), None);
        let given: Vec<Id> = (0..100).map(|_| ids.next()).collect();
        assert!(given[0] > ahead && given.is_sorted());
    }

    #[test]
    fn ids_with_a_tag_have_it_are_unique_and_sorted_and_keep_to_the_clock() {
        let tag = IdTag::new(0xa1_b2c3);
        let ids = Ids::after(None, Some(tag));
        let given: Vec<Id> = (0..10_000).map(|_| ids.next()).collect();
        assert!(given.iter().all(|id| id.tag() == tag && id.0.get_version_num() == 7));
        assert!(given.windows(2).all(|two| two[0] < two[1]), "sorted, and none twice");
        let ms = |id: Id| id.number() >> BELOW_TIME;
        let last = *given.last().unwrap();
        assert!(ms(last) <= ms(Id::fresh()) + 1, "many in one millisecond do not run ahead");
        assert!(given[0].to_string().contains("a1-b2c3"));
    }

    #[test]
    fn a_clock_that_was_set_back_keeps_the_tag() {
        let tag = IdTag::new(7);
        let hour = 3_600_000_u128 << BELOW_TIME;
        let ahead = Id::from_number(Id::fresh().number() + hour).tagged(tag);
        let ids = Ids::after(Some(ahead), Some(tag));
        let given: Vec<Id> = (0..100).map(|_| ids.next()).collect();
        assert!(given[0] > ahead && given.windows(2).all(|two| two[0] < two[1]));
        assert!(given.iter().all(|id| id.tag() == tag));
    }
}
