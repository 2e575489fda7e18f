//! Which operation a path means, and whether its query asks to wait. A path is read as Go's server
//! does it: unescaped, unless it is not the way Go itself would have escaped the result; then as it
//! came, in all its parts. Parts of a query that Go's parser does not take are passed over.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// Where everything of this door is.
pub(super) const MOUNT: &str = "/api/v0/processes";

/// What a path is the path of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    Start,
    List,
    /// The id, as bytes: nothing says that it is one of ours.
    Output(Vec<u8>),
    Signal(Vec<u8>),
    Token(Vec<u8>),
}

/// Method and path of every operation, with a name where a path has a part of the client's.
pub(super) const ROUTES: [(&str, &str); 5] = [
    ("POST", "/api/v0/processes/start"),
    ("GET", "/api/v0/processes/list"),
    ("GET", "/api/v0/processes/{id}/output"),
    ("POST", "/api/v0/processes/{id}/signal"),
    ("GET", "/api/v0/processes/tokens/{token}"),
];

/// A `%` without two hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadEscape;

impl Endpoint {
    /// `None` where there is nothing.
    pub(super) fn from_path(path: &str) -> Result<Option<Self>, BadEscape> {
        let unescaped = unescape(path)?;
        let escaped = percent_encode(&unescaped, &ESCAPED).to_string();
        let path = if escaped == path { unescaped } else { path.as_bytes().to_vec() };
        let below = path.strip_prefix(MOUNT.as_bytes()).and_then(|path| path.strip_prefix(b"/"));
        let Some(below) = below else { return Ok(None) };
        let segments: Vec<&[u8]> = below.split(|byte| *byte == b'/').collect();
        Ok(Some(match segments[..] {
            [b"start"] => Self::Start,
            [b"list"] => Self::List,
            [id, b"output"] => Self::Output(id.to_vec()),
            [id, b"signal"] => Self::Signal(id.to_vec()),
            [b"tokens", token] if !token.is_empty() => Self::Token(token.to_vec()),
            _ => return Ok(None),
        }))
    }

    /// Where it is in [`ROUTES`].
    pub(super) fn route(&self) -> usize {
        match self {
            Self::Start => 0,
            Self::List => 1,
            Self::Output(_) => 2,
            Self::Signal(_) => 3,
            Self::Token(_) => 4,
        }
    }
}

/// What Go escapes in a path.
const ESCAPED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

/// Bytes for their escapes.
fn unescape(text: &str) -> Result<Vec<u8>, BadEscape> {
    let is_escape = |rest: &[u8]| matches!(rest, [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit());
    // The crate would leave a `%` without two digits as it is.
    if !text.as_bytes().split(|byte| *byte == b'%').skip(1).all(is_escape) {
        return Err(BadEscape);
    }
    Ok(percent_decode_str(text).collect())
}

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

    fn check(below: &str, want: impl Into<Option<Endpoint>>) {
        assert_eq!(Endpoint::from_path(&format!("{MOUNT}{below}")), Ok(want.into()), "{below}");
    }

    fn check_id(segment: &str, want: &[u8]) {
        check(&format!("/{segment}/output"), Endpoint::Output(want.to_vec()));
        check(&format!("/{segment}/signal"), Endpoint::Signal(want.to_vec()));
    }

    #[test]
    fn the_four_operations_and_the_token_have_their_places() {
        check("/start", Endpoint::Start);
        check("/list", Endpoint::List);
        check_id("abc", b"abc");
        check("/tokens/abc", Endpoint::Token(b"abc".to_vec()));
    }

    #[test]
    fn an_id_may_look_like_anything() {
        for id in ["", "list", "start", "tokens", "..", "%252F"] {
            let want = if id == "%252F" { "%2F" } else { id };
            check_id(id, want.as_bytes());
        }
    }

    #[test]
    fn escapes_that_go_would_have_written_are_undone_and_others_are_not() {
        check_id("a%20b", b"a b");
        check_id("%22", b"\"");
        check_id("%C3%A9", "\u{e9}".as_bytes());
        check_id("%FF", b"\xff");
        check_id("%25", b"%");
        check_id("a%2Fb", b"a%2Fb");
        check_id("%2e%2e", b"%2e%2e");
        check_id("%3Cb%3E%26", b"%3Cb%3E%26");
        check_id("%c3%a9", b"%c3%a9");
        check_id("a!%20", b"a!%20");
    }

    #[test]
    fn everywhere_else_is_nothing() {
        for below in ["", "/", "/list/", "/LIST", "/abc", "/abc/", "/abc/output/", "/abc/output/x"]
        {
            check(below, None);
        }
        for below in
            ["/abc/Output", "//list", "/tokens/", "/tokens", "/tokens/a/b", "list", "x/y/output"]
        {
            check(below, None);
        }
    }

    #[test]
    fn a_broken_escape_is_an_error() {
        for below in ["/%zz/output", "/%", "/%2", "/a%4g/output"] {
            assert_eq!(Endpoint::from_path(&format!("{MOUNT}{below}")), Err(BadEscape), "{below}");
        }
    }

    fn check_wait(queries: &[&str], want: WaitFor) {
        queries
            .iter()
            .for_each(|query| assert_eq!(WaitFor::from_query(Some(query)), want, "{query}"));
    }

    #[test]
    fn only_the_first_wait_counts_and_only_if_it_is_true() {
        assert_eq!(WaitFor::from_query(None), WaitFor::Nothing);
        check_wait(&["wait=true", "wait=%74rue", "wait=true&wait=false"], WaitFor::Ending);
        check_wait(&["%zz&wait=true", "w=1&wait=true", "%77ait=true"], WaitFor::Ending);
        check_wait(
            &["", "wait", "wait=", "wait=1", "wait=TRUE", "wait=True", "wait=yes"],
            WaitFor::Nothing,
        );
        check_wait(&["wait=true%20", "wait=+true", "WAIT=true", "Wait=true"], WaitFor::Nothing);
        check_wait(&["wait=false&wait=true", "wait=tr%zzue"], WaitFor::Nothing);
    }

    #[test]
    fn what_cannot_be_read_does_not_count() {
        check_wait(&["wait=true;x=1", "x;y"], WaitFor::Nothing);
        check_wait(&["wait=%zz&wait=true", "wait=false;&wait=true"], WaitFor::Ending);
    }
}
