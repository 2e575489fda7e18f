//! Where a follower is, as the ids of its events say it.

use std::fmt;

use lastbyte_wire::Error;

use crate::from_wire::invalid;

/// A cursor, and whether the ending was told: at the final length both can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowPlace {
    pub cursor: u64,
    pub ended: bool,
}

/// Follows the cursor if the ending was told.
const ENDED: &str = "-ended";

impl FollowPlace {
    pub(super) fn parse(id: &str) -> Result<Self, Error> {
        let (cursor, ended) = match id.strip_suffix(ENDED) {
            Some(cursor) => (cursor, true),
            None => (id, false),
        };
        let none = |_| invalid(format!("{id:?} is not the id of an event of this stream"));
        Ok(Self { cursor: cursor.parse().map_err(none)?, ended })
    }

    /// Negative counts from the end of a log of this length.
    pub(super) fn from_offset(from: i64, total: u64) -> Self {
        let cursor = u64::try_from(from).unwrap_or(total.saturating_sub(from.unsigned_abs()));
        Self { cursor, ended: false }
    }

    /// A place past the end belongs to another log.
    pub(super) fn check(self, total: u64) -> Result<(), Error> {
        let Self { cursor, .. } = self;
        if cursor > total {
            let message = format!("{cursor} is past the end of the output ({total} bytes)");
            return Err(invalid(message));
        }
        Ok(())
    }
}

impl fmt::Display for FollowPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.cursor, if self.ended { ENDED } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_as_the_place_it_was() {
        for (cursor, ended) in [(0, false), (7, true), (u64::MAX, false)] {
            let place = FollowPlace { cursor, ended };
            assert_eq!(FollowPlace::parse(&place.to_string()).unwrap(), place);
        }
        for id in ["", "-1", "7-", "-ended", "7-ended-ended", "1-2", " 7"] {
            assert!(FollowPlace::parse(id).is_err(), "{id:?}");
        }
    }

    #[test]
    fn a_place_before_the_beginning_is_the_beginning() {
        assert_eq!(FollowPlace::from_offset(-3, 10).cursor, 7);
        assert_eq!(FollowPlace::from_offset(-30, 10).cursor, 0);
        assert_eq!(FollowPlace::from_offset(30, 10).cursor, 30);
    }
}
