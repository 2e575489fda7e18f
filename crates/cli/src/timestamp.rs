//! Times since 1970 in nanoseconds, as people read and write them: `2026-11-16T07:03:29.123Z`, or with the
//! offset of the local time zone.

use jiff::civil::{DateTime, Time};
use jiff::fmt::temporal::Pieces;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// In which time zone times are shown.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Zone {
    /// Show times in UTC instead of local time
    #[arg(long)]
    utc: bool,
}

impl Zone {
    /// The time to the second.
    pub(crate) fn seconds(self, unix_ns: u64) -> String {
        self.show(timestamp(unix_ns), 0)
    }

    /// The same to the millisecond: always as long.
    pub(crate) fn milliseconds(self, unix_ns: u64) -> String {
        self.show(timestamp(unix_ns), 3)
    }

    fn show(self, time: Timestamp, digits: usize) -> String {
        let offset = if self.utc { Offset::UTC } else { TimeZone::system().to_offset(time) };
        if offset == Offset::UTC {
            return format!("{time:.digits$}");
        }
        format!("{:.digits$}", time.display_with_offset(offset))
    }
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

/// Reads a time of the local time zone: a date and a time of day, or a time of day alone, which is the
/// last one before now.
pub(crate) fn parse_local(text: &str) -> Option<u64> {
    parse_in(text, Timestamp::now(), &TimeZone::system())
}

fn parse_in(text: &str, now: Timestamp, zone: &TimeZone) -> Option<u64> {
    let in_zone = |time: DateTime| Some(time.to_zoned(zone.clone()).ok()?.timestamp());
    let time = if let Ok(pieces) = Pieces::parse(text) {
        in_zone(DateTime::from_parts(pieces.date(), pieces.time()?))?
    } else {
        // Without a colon it would be a number.
        let time: Time = text.contains(':').then(|| text.parse().ok())??;
        let today = now.to_zoned(zone.clone()).date();
        match in_zone(today.to_datetime(time))? {
            to_come if to_come > now => in_zone(today.yesterday().ok()?.to_datetime(time))?,
            past => past,
        }
    };
    Some(u64::try_from(time.as_nanosecond()).unwrap_or(0))
}

/// The time in UTC, to the millisecond.
pub(crate) fn now_in_utc() -> String {
    Zone { utc: true }.milliseconds(now())
}

/// The clock of this machine.
pub(crate) fn now() -> u64 {
    u64::try_from(Timestamp::now().as_nanosecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTC: Zone = Zone { utc: true };
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
            assert_eq!(UTC.seconds(at * NS), want);
            assert_eq!(parse(want), Some(at * NS));
        }
        assert_eq!(UTC.milliseconds(951_782_399 * NS + 7_999_999), "2000-02-28T23:59:59.007Z");
    }

    #[test]
    fn every_day_is_read_back_as_it_was_written() {
        for day in 0..100_000 {
            let (at, step) = (day * DAY * NS, 45_296_789_000_000);
            assert_eq!(parse(&UTC.seconds(at)), Some(at));
            assert_eq!(parse(&UTC.milliseconds(at + step)), Some(at + step));
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
    fn a_time_without_an_offset_is_local() {
        // 2026-11-16T13:00 there.
        let now: Timestamp = "2026-11-16T11:00:00Z".parse().unwrap();
        let zone = TimeZone::fixed(Offset::constant(2));
        for (text, want) in [
            ("12:30", "2026-11-16T10:30:00Z"),
            ("13:00:00", "2026-11-16T11:00:00Z"),
            ("13:00:01", "2026-11-15T11:00:01Z"),
            ("00:10", "2026-11-15T22:10:00Z"),
            ("2026-01-02T03:04:05.5", "2026-01-02T01:04:05.5Z"),
            ("2026-01-02 03:04", "2026-01-02T01:04:00Z"),
        ] {
            assert_eq!(parse_in(text, now, &zone), parse(want), "{text}");
        }
        for text in ["1230", "12", "24:00", "12:60", "2026-01-02", "noon", ":"] {
            assert_eq!(parse_in(text, now, &zone), None, "{text}");
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
