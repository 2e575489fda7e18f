//! Times of the day as RFC 3339 writes them: `2026-11-16T07:03:29.123Z`.

/// A time since 1970, to the second, at Greenwich.
pub(crate) fn seconds(unix_ns: u64) -> String {
    let seconds = unix_ns / NS;
    let (days, second) = (seconds / DAY, seconds % DAY);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The same to the millisecond: always as long.
pub(crate) fn milliseconds(unix_ns: u64) -> String {
    let mut text = seconds(unix_ns);
    text.pop();
    text + &format!(".{:03}Z", unix_ns % NS / 1_000_000)
}

/// Reads a time since 1970, in nanoseconds; `None` for what is no time. One that is too early or too
/// late for them is the first or the last of them.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let (date, rest) = text.split_at_checked(10)?;
    let (clock, rest) = rest.strip_prefix(['T', 't', ' '])?.split_at_checked(8)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let (fraction, zone) = fraction(rest)?;
    // A leap second is the first of the next minute.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // As if all were so many years later: then nothing is before 1970 on the way.
    let seconds = days(year + SHIFT, month, day)? * DAY + hour * 3_600 + minute * 60 + second;
    let seconds = seconds.checked_add_signed(-offset(zone)?)?;
    Some(match seconds.checked_sub(SHIFT / 400 * ERA * DAY) {
        Some(seconds) => seconds.saturating_mul(NS).saturating_add(fraction),
        None => 0,
    })
}

/// Years after which the calendar repeats, more than 1970.
const SHIFT: u64 = 2_000;

const NS: u64 = 1_000_000_000;
const DAY: u64 = 86_400;

/// Numbers of these widths with a sign between them.
fn numbers(text: &str, between: char, widths: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(between);
    let read = widths.map(|width| parts.next().and_then(|part| number(part, width)));
    let [Some(first), Some(second), Some(third)] = read else { return None };
    parts.next().is_none().then_some([first, second, third])
}

fn number(text: &str, width: usize) -> Option<u64> {
    let is_number = text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// The nanoseconds of a second, and what comes behind them. Digits past the ninth are of no weight.
fn fraction(text: &str) -> Option<(u64, &str)> {
    let Some(text) = text.strip_prefix('.') else { return Some((0, text)) };
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let counted = digits.get(..9).unwrap_or(digits);
    number(&format!("{counted:0<9}"), 9).filter(|_| !digits.is_empty()).map(|ns| (ns, rest))
}

/// How many seconds a zone is ahead of Greenwich.
fn offset(zone: &str) -> Option<i64> {
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => return Some(0),
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hour, minute) = rest.split_once(':')?;
    let (hour, minute) = (number(hour, 2)?, number(minute, 2)?);
    (hour <= 23 && minute <= 59).then(|| sign * (hour * 3_600 + minute * 60) as i64)
}

/// The Gregorian date so many days after 1970-01-01. Years begin in March here, so that the leap
/// day is the last; an era is the 400 years after which all repeats.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + FROM_MARCH;
    let (era, of_era) = (days / ERA, days % ERA);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153; // from March
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// The days of 400 years.
const ERA: u64 = 146_097;
/// The days from 0000-03-01 to 1970-01-01.
const FROM_MARCH: u64 = 719_468;

/// The other way round; `None` for a date that is in no calendar. Not before 1970.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1..=12).contains(&month) {
        return None;
    }
    let (year_from_march, month_from_march) =
        if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year_from_march / 400, year_from_march % 400);
    let of_year = (153 * month_from_march + 2) / 5 + day.checked_sub(1)?;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    let days = era * ERA + of_era - FROM_MARCH;
    // A day that a month does not have is one of the next month.
    (date(days) == (year, month, day)).then_some(days)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("1970-01-01T00:00:00.1234567891Z", 123_456_789),
            ("1970-01-01T01:30:00+01:30", 0),
            ("1969-12-31T23:00:01-01:00", NS),
            ("1970-01-01T00:00:00-00:01", 60 * NS),
            ("1970-01-01T00:00:60Z", 60 * NS),
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
            "2026-11-16T07:03Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:61Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+1:00",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00ZZ",
            "+026-01-01T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "ü26-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
