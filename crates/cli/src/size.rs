//! Sizes as people type them: one number and its unit.

use lastbyte_client::wire::Tty;
use lastbyte_output::log::Quota;

/// Reads `64MiB`, `1.5GB` or a plain number of bytes, as a quota.
pub(crate) fn parse_quota(text: &str) -> Result<Quota, String> {
    Quota::new(parse(text)?).map_err(|error| error.to_string())
}

/// Reads `24x80`: rows and columns of a terminal.
pub(crate) fn parse_tty(text: &str) -> Result<Tty, String> {
    let size = text.split_once('x').and_then(|(rows, cols)| {
        let (rows, cols) = (rows.parse().ok()?, cols.parse().ok()?);
        (rows > 0 && cols > 0).then_some(Tty { rows, cols })
    });
    size.ok_or_else(|| "the size of a terminal is ROWSxCOLS, like 24x80".into())
}

fn parse(text: &str) -> Result<u64, String> {
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(number_end);
    let factor = match unit {
        "" | "B" => 1.0,
        "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(ACCEPTED.into()),
    };
    let number: f64 = number.parse().map_err(|_| ACCEPTED)?;
    Ok((number * factor) as u64) // as far as it goes: more than any disk is as good as no bound
}

const ACCEPTED: &str = "a size is a number with a unit, B, KB, MB, GB, KiB, MiB or GiB: 64MiB";

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(parse(text), Ok(bytes), "{text}");
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
    fn what_is_no_size_is_refused_with_what_is_accepted() {
        for text in ["", "-1", "1 MiB", "MiB", "1mib", "1TiB", "1.2.3B", "."] {
            assert_eq!(parse(text), Err(ACCEPTED.to_owned()), "{text:?}");
        }
        assert!(parse_quota("1KiB").is_err_and(|error| error.contains("too small")));
    }
}
