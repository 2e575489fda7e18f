//! Durations as people type them: one number and its unit.

use std::time::Duration;

/// Reads `500ms`, `2s`, `1.5m` or `1h`, and refuses no time at all.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let duration = parse_or_zero(text)?;
    match duration.is_zero() {
        true => {
            Err("a time of zero leaves the command none; leave the option out for no limit".into())
        }
        false => Ok(duration),
    }
}

/// Reads a time that may be none. One too long to be counted is as long as can be.
pub(crate) fn parse_or_zero(text: &str) -> Result<Duration, String> {
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(number_end);
    let seconds_per_unit = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(ACCEPTED.into()),
    };
    let number: f64 = number.parse().map_err(|_| ACCEPTED)?;
    Ok(Duration::try_from_secs_f64(number * seconds_per_unit).unwrap_or(Duration::MAX))
}

/// As the API takes it: in milliseconds, and not less than was asked for.
pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

const ACCEPTED: &str = "a time is a number with a unit, ms, s, m or h: 500ms, 2s, 1.5m, 1h";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_a_unit_is_a_time() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("2s", 2_000),
            ("1.5s", 1_500),
            (".5s", 500),
            ("5m", 300_000),
            ("0.25h", 900_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn a_time_past_every_clock_is_the_longest_there_is() {
        assert_eq!(parse("99999999999999999999h"), Ok(Duration::MAX));
    }

    #[test]
    fn what_is_no_time_is_refused_with_what_is_accepted() {
        for text in
            ["", "2", "s", "-2s", "+2s", "2 s", "1h30m", "2d", "2S", "1e3s", "infs", "1.2.3s", "."]
        {
            assert_eq!(parse(text), Err(ACCEPTED.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn a_part_of_a_millisecond_is_not_lost() {
        assert_eq!(ms(parse("0.1ms").unwrap()), 1);
        assert_eq!(ms(parse("2s").unwrap()), 2_000);
        assert_eq!(ms(Duration::MAX), u64::MAX);
    }

    #[test]
    fn no_time_at_all_is_refused() {
        for text in ["0s", "0.0h", "0.0000001ms"] {
            assert!(parse(text).is_err_and(|error| error.contains("zero")), "{text}");
            assert_eq!(parse_or_zero(text), Ok(Duration::ZERO), "{text}");
        }
    }
}
