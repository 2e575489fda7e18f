//! Times since 1970 in nanoseconds, as people read and write them: `2026-11-16T07:03:29.123Z`.

use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;
use jiff::{SignedDuration, Timestamp};

/// The time in UTC, to the second.
pub(crate) fn seconds(unix_ns: u64) -> String {
    format!("{:.0}", timestamp(unix_ns))
}

/// The same to the millisecond: always as long.
pub(crate) fn milliseconds(unix_ns: u64) -> String {
    format!("{:.3}", timestamp(unix_ns))
}

fn timestamp(unix_ns: u64) -> Timestamp {
    Timestamp::from_nanosecond(unix_ns.into()).expect("2554 is before the year 10000")
}

/// Reads a date and a time of day with an offset; `None` for anything else. A time before 1970 or
/// after 2554 is the first or the last that can be counted.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let pieces = Pieces::parse(text).ok()?;
    let offset = pieces.to_numeric_offset()?;
    // Not as a `Timestamp`, which ends before the last day of the year 9999.
    let since_1970 = DateTime::from_parts(pieces.date(), pieces.time()?)
        .duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0))
        .saturating_sub(SignedDuration::from_secs(offset.seconds().into()));
    Some(u64::try_from(since_1970.as_nanos().max(0)).unwrap_or(u64::MAX))
}

/// The clock of this machine.
pub(crate) fn now() -> u64 {
    u64::try_from(Timestamp::now().as_nanosecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: u64 = 1_000_000_000;
    const DAY: u64 = 86_400;

    #[test]
    fn a_time_is_a_date_and_a_clock() {
        for (at, want) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (4_102_444_800, "2100-01-01T00:00:00Z"),
        ] {
            assert_eq!(seconds(at * NS), want);
            assert_eq!(parse(want), Some(at * NS));
        }
        assert_eq!(milliseconds(951_782_399 * NS + 7_999_999), "2000-02-28T23:59:59.007Z");
    }

    #[test]
    fn every_day_is_read_back_as_it_was_written() {
        for day in 0..100_000 {
            let (at, step) = (day * DAY * NS, 45_296_789_000_000);
            assert_eq!(parse(&seconds(at)), Some(at));
            assert_eq!(parse(&milliseconds(at + step)), Some(at + step));
        }
    }

    #[test]
    fn fractions_and_zones_count() {
        for (text, want) in [
            ("1970-01-01 00:00:01z", NS),
            ("1970-01-01t00:00:00.5Z", NS / 2),
            ("1970-01-01T00:00:00.123456789Z", 123_456_789),
            ("1970-01-01T00:01Z", 60 * NS),
            ("1970-01-01T01:30:00+01:30", 0),
            ("1969-12-31T23:00:01-01:00", NS),
            ("1970-01-01T00:00:00-00:01", 60 * NS),
            // A leap second is as good as the one before it.
            ("1970-01-01T00:00:60Z", 59 * NS),
        ] {
            assert_eq!(parse(text), Some(want), "{text}");
        }
    }

    #[test]
    fn a_time_that_cannot_be_counted_is_the_nearest_that_can() {
        for (text, want) in [
            ("1970-01-01T00:00:00+00:01", 0),
            ("1969-12-31T23:59:59.999Z", 0),
            ("0000-01-01T00:00:00+23:59", 0),
            ("2554-07-21T23:34:33.709551615Z", u64::MAX),
            ("2554-07-21T23:34:33.709551614Z", u64::MAX - 1),
            ("2554-07-21T23:34:34Z", u64::MAX),
            ("9999-12-31T23:59:60-23:59", u64::MAX),
        ] {
            assert_eq!(parse(text), Some(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_not_read_as_one() {
        for text in [
            "",
            "2026-11-16",
            "2026-11-16T07:03:29",
            "2026-11-16T7:03Z",
            "2026-01-01T00:00:00.1234567891Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:61Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+1:00",
            "2026-01-01T00:00:00+26:00",
            "2026-01-01T00:00:00ZZ",
            "+026-01-01T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "ü26-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
