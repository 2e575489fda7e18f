//! The raw view: bytes, and what the head of the answer says of them.

use bytes::Bytes;
use hyper::HeaderMap;
use serde::de::DeserializeOwned;

use crate::Problem;
use crate::wire::{Ending, Phase, Range, head};

/// A part of a log, all of one instant. The fields are those of [`crate::wire::Output`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawOutput {
    pub from: u64,
    pub next: u64,
    pub total: u64,
    pub dropped: Vec<Range>,
    pub phase: Phase,
    pub log_open: bool,
    pub final_len: Option<u64>,
    pub ending: Option<Ending>,
    pub bytes: Bytes,
}

impl RawOutput {
    pub(crate) fn new(headers: &HeaderMap, bytes: Bytes) -> Result<Self, Problem> {
        let head = Head(headers);
        Ok(Self {
            from: head.required(head::FROM)?,
            next: head.required(head::NEXT)?,
            total: head.required(head::TOTAL)?,
            dropped: head.ranges(head::DROPPED)?,
            phase: head.required(head::PHASE)?,
            log_open: head.required(head::LOG_OPEN)?,
            final_len: head.optional(head::FINAL_LEN)?,
            ending: head.optional(head::ENDING)?,
            bytes,
        })
    }
}

struct Head<'a>(&'a HeaderMap);

impl Head<'_> {
    fn text(&self, name: &'static str) -> Result<Option<&str>, Problem> {
        let value = self.0.get(name).map(|value| value.to_str());
        value.transpose().map_err(|_| Problem::Head { name })
    }

    /// Numbers, truth values and objects are JSON already; a word is not.
    fn optional<T: DeserializeOwned>(&self, name: &'static str) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let value = serde_json::from_str(text).or_else(|_| serde_json::from_value(text.into()));
        value.map(Some).map_err(|_| Problem::Head { name })
    }

    fn required<T: DeserializeOwned>(&self, name: &'static str) -> Result<T, Problem> {
        self.optional(name)?.ok_or(Problem::Head { name })
    }

    fn ranges(&self, name: &'static str) -> Result<Vec<Range>, Problem> {
        let listed = self.text(name)?.unwrap_or_default();
        let ranges = listed.split(',').map(str::trim).filter(|range| !range.is_empty());
        ranges.map(|text| range(text).ok_or(Problem::Head { name })).collect()
    }
}

/// `start-end`.
fn range(text: &str) -> Option<Range> {
    let (start, end) = text.split_once('-')?;
    Some(Range { start: start.parse().ok()?, end: end.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    const RUNNING: [(&str, &str); 5] = [
        (head::FROM, "3"),
        (head::NEXT, "9"),
        (head::TOTAL, "9"),
        (head::PHASE, "running"),
        (head::LOG_OPEN, "true"),
    ];

    #[test]
    fn what_the_head_does_not_say_is_absent() {
        let want = RawOutput {
            from: 3,
            next: 9,
            total: 9,
            dropped: vec![],
            phase: Phase::Running,
            log_open: true,
            final_len: None,
            ending: None,
            bytes: Bytes::from_static(b"abcdef"),
        };
        assert_eq!(RawOutput::new(&headers(&RUNNING), want.bytes.clone()).unwrap(), want);
    }

    #[test]
    fn dropped_ranges_are_read_one_by_one() {
        let mut pairs = RUNNING.to_vec();
        pairs.push((head::DROPPED, "4-5,7-90"));
        let raw = RawOutput::new(&headers(&pairs), Bytes::new()).unwrap();
        assert_eq!(raw.dropped, [Range { start: 4, end: 5 }, Range { start: 7, end: 90 }]);
    }

    #[test]
    fn a_head_that_says_too_little_or_nonsense_is_named() {
        let missing = RawOutput::new(&headers(&RUNNING[..4]), Bytes::new()).unwrap_err();
        assert!(matches!(missing, Problem::Head { name: head::LOG_OPEN }), "{missing:?}");
        let mut pairs = RUNNING.to_vec();
        pairs[3].1 = "sleeping";
        let nonsense = RawOutput::new(&headers(&pairs), Bytes::new()).unwrap_err();
        assert!(matches!(nonsense, Problem::Head { name: head::PHASE }), "{nonsense:?}");
    }
}
