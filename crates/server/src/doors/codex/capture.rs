//! One stream of a command, as far as its cap goes.

use lastbyte_output::decode::Decoder;

/// Counts a stream and clips what is handed on.
#[derive(Debug)]
pub(super) struct Capture {
    cap: Option<u64>,
    total: u64,
    given: u64,
    cap_reached: bool,
}

/// A piece of the stream that the client gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Clipped<'a> {
    pub(super) bytes: &'a [u8],
    /// So far the client got exactly the cap, and nothing follows.
    pub(super) cap_reached: bool,
}

/// A stream as text. What is no UTF-8 spoils only itself.
#[derive(Debug, Default)]
pub(super) struct Text {
    decoder: Decoder,
    text: String,
}

impl Capture {
    pub(super) fn new(cap: Option<u64>) -> Self {
        Self { cap, total: 0, given: 0, cap_reached: false }
    }

    /// What of these bytes the client gets; `None` when that is nothing.
    pub(super) fn take<'a>(&mut self, bytes: &'a [u8]) -> Option<Clipped<'a>> {
        self.total += bytes.len() as u64;
        if self.cap_reached || bytes.is_empty() {
            return None;
        }
        let left = self.cap.map_or(u64::MAX, |cap| cap - self.given);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        self.given += count as u64;
        self.cap_reached = self.cap == Some(self.given);
        Some(Clipped { bytes: &bytes[..count], cap_reached: self.cap_reached })
    }

    /// All there was, handed on or not.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn cap_reached(&self) -> bool {
        self.cap_reached
    }

    /// Something was not handed on.
    pub(super) fn truncated(&self) -> bool {
        self.total > self.given
    }
}

impl Text {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.decoder.push(bytes, &mut self.text);
    }

    pub(super) fn finish(mut self) -> String {
        self.decoder.finish(&mut self.text);
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(cap: Option<u64>, chunks: &[&str]) -> Vec<(String, bool)> {
        let mut capture = Capture::new(cap);
        let taken = chunks.iter().filter_map(|chunk| {
            let Clipped { bytes, cap_reached } = capture.take(chunk.as_bytes())?;
            Some((String::from_utf8(bytes.to_vec()).unwrap(), cap_reached))
        });
        taken.collect()
    }

    #[test]
    fn the_cap_is_told_where_it_is_met_and_nothing_follows() {
        let abc = |cap_reached| vec![("abc".to_owned(), cap_reached)];
        assert_eq!(pieces(Some(3), &["abcdef", "g"]), abc(true));
        assert_eq!(pieces(Some(3), &["abc"]), abc(true));
        assert_eq!(pieces(Some(4), &["abc"]), abc(false));
        assert_eq!(pieces(None, &["abc"]), abc(false));
        let split = pieces(Some(3), &["ab", "cd", "ef"]);
        assert_eq!(split, [("ab".to_owned(), false), ("c".to_owned(), true)]);
    }

    #[test]
    fn a_cap_of_nothing_is_met_by_the_first_byte() {
        assert_eq!(pieces(Some(0), &[]), []);
        assert_eq!(pieces(Some(0), &["a", "b"]), [(String::new(), true)]);
    }

    #[test]
    fn what_was_not_handed_on_is_counted() {
        let mut capture = Capture::new(Some(3));
        capture.take(b"abc");
        assert!(capture.cap_reached() && !capture.truncated());
        capture.take(b"de");
        assert!(capture.truncated());
        assert_eq!(capture.total(), 5);
    }

    #[test]
    fn a_character_that_the_cap_cuts_spoils_only_itself() {
        let mut text = Text::default();
        text.push(&"h\u{e9}llo \u{65e5}".as_bytes()[..8]);
        assert_eq!(text.finish(), "h\u{e9}llo \u{fffd}");
    }
}
