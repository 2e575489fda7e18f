//! Whether a query asks to wait. Parts that Go's parser does not take it passes over.

use super::path::unescape;

/// When output is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Not,
    ForTheEnding,
}

impl Wait {
    /// Only if the first `wait` is exactly `true`.
    pub(super) fn of(query: Option<&str>) -> Self {
        let parts = query.unwrap_or_default().split('&').filter(|part| !part.contains(';'));
        let mut pairs = parts.filter_map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Some((unescape_part(name)?, unescape_part(value)?))
        });
        match pairs.find(|(name, _)| name == b"wait") {
            Some((_, value)) if value == b"true" => Self::ForTheEnding,
            Some(_) | None => Self::Not,
        }
    }
}

fn unescape_part(part: &str) -> Option<Vec<u8>> {
    unescape(&part.replace('+', " ")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(queries: &[&str], want: Wait) {
        queries.iter().for_each(|query| assert_eq!(Wait::of(Some(query)), want, "{query}"));
    }

    #[test]
    fn only_the_first_wait_counts_and_only_if_it_is_true() {
        assert_eq!(Wait::of(None), Wait::Not);
        check(&["wait=true", "wait=%74rue", "wait=true&wait=false"], Wait::ForTheEnding);
        check(&["%zz&wait=true", "w=1&wait=true", "%77ait=true"], Wait::ForTheEnding);
        check(&["", "wait", "wait=", "wait=1", "wait=TRUE", "wait=True", "wait=yes"], Wait::Not);
        check(&["wait=true%20", "wait=+true", "WAIT=true", "Wait=true"], Wait::Not);
        check(&["wait=false&wait=true", "wait=tr%zzue"], Wait::Not);
    }

    #[test]
    fn what_cannot_be_read_does_not_count() {
        check(&["wait=true;x=1", "x;y"], Wait::Not);
        check(&["wait=%zz&wait=true", "wait=false;&wait=true"], Wait::ForTheEnding);
    }
}
