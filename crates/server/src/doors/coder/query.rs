//! Whether a query asks to wait. Parts that Go's parser does not take it passes over.

use super::path::unescape;

/// When output is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitFor {
    Nothing,
    Ending,
}

impl WaitFor {
    /// Only if the first `wait` is exactly `true`.
    pub(super) fn from_query(query: Option<&str>) -> Self {
        let parts = query.unwrap_or_default().split('&').filter(|part| !part.contains(';'));
        let mut pairs = parts.filter_map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Some((unescape_part(name)?, unescape_part(value)?))
        });
        match pairs.find(|(name, _)| name == b"wait") {
            Some((_, value)) if value == b"true" => Self::Ending,
            Some(_) | None => Self::Nothing,
        }
    }
}

fn unescape_part(part: &str) -> Option<Vec<u8>> {
    unescape(&part.replace('+', " ")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(queries: &[&str], want: WaitFor) {
        queries
            .iter()
            .for_each(|query| assert_eq!(WaitFor::from_query(Some(query)), want, "{query}"));
    }

    #[test]
    fn only_the_first_wait_counts_and_only_if_it_is_true() {
        assert_eq!(WaitFor::from_query(None), WaitFor::Nothing);
        check(&["wait=true", "wait=%74rue", "wait=true&wait=false"], WaitFor::Ending);
        check(&["%zz&wait=true", "w=1&wait=true", "%77ait=true"], WaitFor::Ending);
        check(
            &["", "wait", "wait=", "wait=1", "wait=TRUE", "wait=True", "wait=yes"],
            WaitFor::Nothing,
        );
        check(&["wait=true%20", "wait=+true", "WAIT=true", "Wait=true"], WaitFor::Nothing);
        check(&["wait=false&wait=true", "wait=tr%zzue"], WaitFor::Nothing);
    }

    #[test]
    fn what_cannot_be_read_does_not_count() {
        check(&["wait=true;x=1", "x;y"], WaitFor::Nothing);
        check(&["wait=%zz&wait=true", "wait=false;&wait=true"], WaitFor::Ending);
    }
}
