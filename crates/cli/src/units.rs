//! Durations and sizes as people type them: one number and its unit.

use std::str::FromStr;
use std::time::Duration;

use lastbyte_client::wire::Tty;
use lastbyte_engine::Signal;
use lastbyte_output::log::Quota;

/// Reads `500ms`, `2s`, `1.5m`, `1h` or `7d`, and refuses no time at all.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    match parse_duration_or_zero(text)? {
        Duration::ZERO => Err("the time must be greater than zero".into()),
        duration => Ok(duration),
    }
}

/// Reads a time that may be none. One too long to be counted is as long as can be.
pub(crate) fn parse_duration_or_zero(text: &str) -> Result<Duration, String> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0)];
    let seconds = parse(text, &units).ok_or(DURATIONS)?;
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// In milliseconds, as the API takes it, rounded up.
pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// As `parse_duration` reads it, in the largest unit up to hours that needs no fraction.
pub(crate) fn duration_text(duration: Duration) -> String {
    let ms = ms(duration);
    let units = [("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    let unit =
        units.into_iter().find(|(_, length)| ms.is_multiple_of(*length)).unwrap_or(("ms", 1));
    format!("{}{}", ms / unit.1, unit.0)
}

/// As the API takes it: a real-time signal has no name.
pub(crate) fn signal_text(signal: Signal) -> String {
    signal.name().map_or_else(|| signal.number().to_string(), |_| signal.to_string())
}

/// Reads `64MiB`, `1.5GB` or a plain number of bytes, as a quota.
pub(crate) fn parse_quota(text: &str) -> Result<Quota, String> {
    Quota::new(parse_size(text)?).map_err(|error| error.to_string())
}

pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    const KIB: f64 = 1024.0;
    let (mib, gib, tib) = (KIB * KIB, KIB * KIB * KIB, KIB * KIB * KIB * KIB);
    let binary = [("KiB", KIB), ("MiB", mib), ("GiB", gib), ("TiB", tib)];
    // As `docker run --memory` and systemd read them.
    let short = [("K", KIB), ("M", mib), ("G", gib), ("T", tib)];
    let decimal = [("", 1.0), ("B", 1.0), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9)];
    let units = [&binary[..], &short, &decimal];
    let bytes = units.into_iter().find_map(|units| parse(text, units)).ok_or(SIZES)?;
    Ok(bytes as u64) // as far as it goes: more than any disk is as good as no bound
}

pub(crate) fn parse_whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a whole number".into())
}

pub(crate) fn parse_context(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| "expected 0 to 255".into())
}

pub(crate) fn parse_port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| "a port is a number from 1 to 65535".into())
}

/// Reads a whole number from 1 to `most`.
pub(crate) fn parse_count(text: &str, most: u64) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| (1..=most).contains(count));
    count.ok_or_else(|| format!("expected a whole number from 1 to {most}"))
}

/// Reads `24x80`: rows and columns of a terminal.
pub(crate) fn parse_tty(text: &str) -> Result<Tty, String> {
    let size = text.split_once('x').and_then(|(rows, cols)| {
        let (rows, cols) = (rows.parse().ok()?, cols.parse().ok()?);
        (rows > 0 && cols > 0).then_some(Tty { rows, cols })
    });
    size.ok_or_else(|| "expected ROWSxCOLS, like 24x80".into())
}

/// A number with one of these units.
fn parse(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(number_end);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    Some(number.parse::<f64>().ok()? * factor)
}

const DURATIONS: &str =
    "expected a number with a unit (ms, s, m, h or d), like 500ms, 2s, 1.5m or 1h";
const SIZES: &str =
    "expected a number with a unit (B, KB, MB, GB, KiB, MiB, GiB or K, M, G), like 64MiB";

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
            ("7d", 604_800_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn a_time_is_shown_as_it_would_be_typed() {
        for text in ["500ms", "1500ms", "2s", "90s", "5m", "1h"] {
            assert_eq!(parse_duration(text).map(duration_text), Ok(text.to_owned()));
        }
    }

    #[test]
    fn a_time_past_every_clock_is_the_longest_there_is() {
        assert_eq!(parse_duration("99999999999999999999h"), Ok(Duration::MAX));
    }

    #[test]
    fn what_is_no_time_is_refused_with_what_is_accepted() {
        for text in
            ["", "2", "s", "-2s", "+2s", "2 s", "1h30m", "2w", "2S", "1e3s", "infs", "1.2.3s", "."]
        {
            assert_eq!(parse_duration(text), Err(DURATIONS.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn a_part_of_a_millisecond_is_not_lost() {
        assert_eq!(ms(parse_duration("0.1ms").unwrap()), 1);
        assert_eq!(ms(parse_duration("2s").unwrap()), 2_000);
        assert_eq!(ms(Duration::MAX), u64::MAX);
    }

    #[test]
    fn no_time_at_all_is_refused() {
        for text in ["0s", "0.0h", "0.0000001ms"] {
            assert!(parse_duration(text).is_err_and(|error| error.contains("zero")), "{text}");
            assert_eq!(parse_duration_or_zero(text), Ok(Duration::ZERO), "{text}");
        }
    }

    #[test]
    fn a_number_with_a_unit_is_a_size() {
        for (text, bytes) in [
            ("1000", 1000),
            ("1000B", 1000),
            ("2KB", 2000),
            ("64MiB", 64 << 20),
            ("1.5KiB", 1536),
            ("1GiB", 1 << 30),
            ("99999999999GiB", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn a_terminal_has_rows_and_columns() {
        assert_eq!(parse_tty("24x80"), Ok(Tty { rows: 24, cols: 80 }));
        for text in ["", "24", "0x80", "24x", "24X80", "70000x1"] {
            assert!(parse_tty(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_letter_alone_is_a_binary_unit_as_in_docker() {
        for (text, bytes) in [("1K", 1 << 10), ("1.5M", 3 << 19), ("2G", 2 << 30), ("1T", 1 << 40)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_what_is_accepted() {
        for text in ["", "-1", "1 MiB", "MiB", "1mib", "1PiB", "1.2.3B", "."] {
            assert_eq!(parse_size(text), Err(SIZES.to_owned()), "{text:?}");
        }
        assert!(parse_quota("1KiB").is_err_and(|error| error.contains("at least 128 KiB")));
    }
}
