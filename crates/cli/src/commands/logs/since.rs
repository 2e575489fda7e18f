//! When to begin, as people say it.

use super::Args;
use crate::{print, timestamp, units};

/// A time since 1970, in nanoseconds: as it is written, or so long ago.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    if let Some(at) = timestamp::parse(text).or_else(|| timestamp::parse_local(text)) {
        return Ok(at);
    }
    let ago = units::parse_duration_or_zero(text).map_err(|_| ACCEPTED)?.as_nanos();
    Ok(timestamp::now().saturating_sub(u64::try_from(ago).unwrap_or(u64::MAX)))
}

/// Says why nothing is shown, or what is: silence could be taken for a command that wrote nothing.
/// The question is answered all the same, so the exit code does not tell.
pub(super) fn warn_if_future(args: &Args) {
    let Some(at) = args.since.filter(|at| *at > timestamp::now()) else { return };
    let so = if args.follow { "showing only new output" } else { "nothing to show" };
    print::message(format_args!("--since is in the future ({}): {so}", args.zone.seconds(at)));
}

const ACCEPTED: &str = "expected how long ago, like 90s, 5m or 1.5h, a time of day, like 14:30, or a date \
                        and time, like 2026-11-16T07:00 or 2026-11-16T07:00:00Z";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_so_long_ago_or_as_it_is_written() {
        for (text, seconds) in [("5m", 300), ("1.5h", 5_400)] {
            let (before, since, after) = (parse("0s"), parse(text), parse("0s"));
            let ago = |now: Result<u64, String>| now.unwrap() - seconds * 1_000_000_000;
            assert!((ago(before)..=ago(after)).contains(&since.unwrap()), "{text}");
        }
        assert_eq!(parse("99999999999h"), Ok(0), "before all there is");
        assert_eq!(parse("1969-07-20T20:17:40Z"), Ok(0), "before all there is");
        assert_eq!(parse("9999-12-31T23:59:59Z"), Ok(u64::MAX), "after all there will be");
        assert_eq!(parse("1970-01-01T00:00:01.5Z"), Ok(1_500_000_000));
        for text in ["", "5", "-5m", "yesterday", "2026-11-16", "7"] {
            assert_eq!(parse(text), Err(ACCEPTED.to_owned()), "{text:?}");
        }
    }
}
