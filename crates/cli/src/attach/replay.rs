//! What of the output before an attach is shown: its last lines.
//!
//! They are shown as text with colours and what moves within lines, and no more: an old question to
//! the terminal would be answered into the program's input, an old title or clipboard would be set
//! again. What a program drew on the alternate screen is left out, for it draws that itself.

use lastbyte_client::wire::OutputQuery;
use lastbyte_client::{Client, ClientError};

use super::modes::{Drawing, Modes};
use super::sequences::{Item, Sequences};
use crate::stdio;

/// An output from some byte on, while it is read.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    sequences: Sequences,
    modes: Modes,
    main_screen: ShownText,
}

/// Characters to show, colours, and what moves within lines.
#[derive(Debug, Default)]
struct ShownText {
    bytes: Vec<u8>,
    /// How many bytes are missing of a character that is incomplete.
    missing: u8,
}

/// Of one line; a bar that is drawn over and over is one.
const MAX_LINE_BYTES: usize = 8 << 10;

impl Replay {
    pub(crate) fn take(&mut self, mut bytes: &[u8]) {
        while let Some(first) = bytes.first() {
            let (text, rest) = bytes.split_at(self.sequences.text_len(bytes));
            if text.is_empty() {
                self.take_byte(*first);
                bytes = &bytes[1..];
            } else {
                if self.modes.drawing() == Drawing::Lines {
                    self.main_screen.add(text);
                }
                bytes = rest;
            }
        }
    }

    /// Bytes are missing here: no line and no sequence continues after them.
    pub(crate) fn gap(&mut self) {
        self.sequences = Sequences::default();
        self.main_screen.missing = 0;
        let in_line = self.main_screen.bytes.last().is_some_and(|byte| *byte != b'\n');
        if in_line && self.modes.drawing() == Drawing::Lines {
            self.main_screen.add(b"\r\n");
        }
    }

    fn take_byte(&mut self, byte: u8) {
        let Some(item) = self.sequences.take(byte) else { return };
        self.modes.apply(item);
        match item {
            _ if self.modes.drawing() == Drawing::Screen => {}
            Item::Csi(all) if is_line_edit(all) => self.main_screen.add(all),
            Item::Text(all) => self.main_screen.add(all),
            Item::Control(byte) => self.main_screen.add(&[byte]),
            // A character does not continue after one.
            Item::Csi(_) | Item::Escape(_) | Item::String => self.main_screen.missing = 0,
        }
    }

    /// The last lines, what the program has made of the terminal, and an incomplete sequence that
    /// later output continues.
    pub(crate) fn finish(self, most_lines: usize) -> (Vec<u8>, Modes, Vec<u8>) {
        let text = match self.modes.drawing() {
            Drawing::Screen => Vec::new(),
            Drawing::Lines => last_lines(&self.main_screen.bytes, most_lines),
        };
        (text, self.modes, self.sequences.incomplete().to_vec())
    }
}

impl ShownText {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.is_shown(*byte) {
                self.bytes.push(*byte);
            }
        }
    }

    /// Whether it is a character to show or of one, or moves within lines; an ESC is of a sequence
    /// that does. A byte that would be a control character in another encoding than UTF-8 is only
    /// shown within a character.
    fn is_shown(&mut self, byte: u8) -> bool {
        let within = self.missing > 0 && matches!(byte, 0x80..=0xbf);
        self.missing = match byte {
            0x80..=0xbf => self.missing.saturating_sub(1),
            0xc2..=0xdf => 1,
            0xe0..=0xef => 2,
            0xf0..=0xf4 => 3,
            _ => 0,
        };
        within || matches!(byte, b'\x08' | b'\t' | b'\n' | b'\r' | 0x1b | b' '..=b'~' | 0xa0..)
    }
}

/// The line that is not ended is one of them.
fn last_lines(text: &[u8], most: usize) -> Vec<u8> {
    let lines = text.rsplitn(most + 1, |byte| *byte == b'\n').take(most);
    let mut lines: Vec<&[u8]> = lines.map(end_of).collect();
    lines.reverse();
    lines.join(&b'\n')
}

/// The end of a line that is too long, from where no sequence and no character is cut.
fn end_of(mut line: &[u8]) -> &[u8] {
    while line.len() > MAX_LINE_BYTES {
        let half = MAX_LINE_BYTES / 2;
        let is_border = |byte: &u8| matches!(byte, b' ' | b'\r' | 0x1b);
        let border = line[half..MAX_LINE_BYTES].iter().position(is_border);
        line = &line[border.map_or(MAX_LINE_BYTES, |border| half + border)..];
    }
    line
}

/// Colours, erasing, and moving by so many columns or lines.
fn is_line_edit(csi: &[u8]) -> bool {
    let plain = csi[2..csi.len() - 1].iter().all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':'));
    match csi.last() {
        Some(b'm' | b'K' | b'P' | b'@' | b'X' | b'A'..=b'D' | b'G') => plain,
        // Not all of the screen, and not what has scrolled off it.
        Some(b'J') => matches!(csi, b"\x1b[J" | b"\x1b[0J"),
        _ => false,
    }
}

/// The first byte that is shown as it comes, and what is shown before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InitialOutput {
    pub(crate) cursor: i64,
    pub(crate) shown: Vec<u8>,
    pub(crate) drawing: Drawing,
}

impl InitialOutput {
    /// At exactly this byte.
    pub(crate) fn at(cursor: i64) -> Self {
        Self { cursor, shown: Vec::new(), drawing: Drawing::Lines }
    }
}

/// How far back to read for changes to the terminal.
const LOOK_BACK: i64 = 16 << 20;
/// Asked for at once.
const PIECE: u64 = 1 << 20;

/// As if our terminal had been there all the time, as far as that can be had: the last screen of
/// lines, or for a program that has the whole screen the screen that it draws on.
pub(crate) async fn last_screen(client: &Client, id: &str) -> Result<InitialOutput, ClientError> {
    let rows = stdio::size().rows.saturating_sub(1).max(1);
    let mut replay = Replay::default();
    let mut cursor = -LOOK_BACK;
    let mut end = None;
    loop {
        let query =
            OutputQuery { from: Some(cursor), max_bytes: Some(PIECE), ..OutputQuery::default() };
        let piece = client.raw(id, &query).await?;
        if u64::try_from(cursor).is_ok_and(|cursor| piece.from > cursor) {
            replay.gap();
        }
        replay.take(&piece.bytes);
        cursor = i64::try_from(piece.next).unwrap_or(i64::MAX);
        // What comes meanwhile is not run after.
        let end = *end.get_or_insert(piece.final_len.unwrap_or(piece.total));
        if piece.next >= end || piece.bytes.is_empty() {
            break;
        }
    }
    let (mut shown, modes, begun) = replay.finish(rows.into());
    shown.extend(modes.turn_on().into_bytes());
    shown.extend(begun);
    Ok(InitialOutput { cursor, shown, drawing: modes.drawing() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replayed(bytes: &[u8]) -> String {
        let mut replay = Replay::default();
        replay.take(bytes);
        String::from_utf8(replay.finish(3).0).unwrap()
    }

    #[test]
    fn the_last_lines_are_shown_the_one_that_is_not_ended_among_them() {
        assert_eq!(replayed(b"a\r\nb\r\nc\r\nd\r\n$ "), "c\r\nd\r\n$ ");
        assert_eq!(replayed("ü\n".as_bytes()), "ü\n");
        assert_eq!(replayed(b""), "");
    }

    #[test]
    fn colours_are_shown_and_nothing_that_asks_sets_or_clears() {
        assert_eq!(
            replayed(b"\x1b[1;31mred\x1b[m\x1b[K\x1b[2D"),
            "\x1b[1;31mred\x1b[m\x1b[K\x1b[2D"
        );
        for asks in [
            &b"\x1b[c"[..],
            b"\x1b[>c",
            b"\x1b[6n",
            b"\x1b[?u",
            b"\x1b[>q",
            b"\x1b[?2026$p",
            b"\x1b[18t",
            b"\x1b]11;?\x07",
            b"\x1b]52;c;aGk=\x07",
            b"\x1b]0;title\x1b\\",
            b"\x1bP+q544e\x1b\\",
            b"\x1bZ",
            b"\x05",
            b"\x07",
            b"\x1b[H\x1b[2J\x1b[3J",
            b"\x1b[>4;2m",
            b"\x1b[?2004h",
            b"\xc2\x9b6n",
            b"\xc2\x9d0;title\xc2\x9c",
            b"\x1b]0;title\xc2\x9c",
            b"\xc2\x9a",
            b"\x9b",
            b"\xc2",
        ] {
            assert_eq!(replayed(&[b"a", asks, b"b"].concat()), "ab", "{}", asks.escape_ascii());
        }
    }

    #[test]
    fn a_control_character_of_another_encoding_begins_nothing() {
        assert_eq!(replayed(b"a\x9b6n\x9d0;title\x9cb"), "a6n0;titleb");
        // In these the same bytes are of a character.
        let text = "Û\u{15b}\u{a9}\u{201c}\u{1f71b}";
        assert_eq!(replayed(text.as_bytes()), text);
        assert_eq!(replayed(b"a\xc2\nb"), "a\nb");
        // Nor is it joined to a character that was broken off.
        for between in ["\x07", "\x1b[c", "\x1b[m", "\x1b]0;title\x07"] {
            let mut replay = Replay::default();
            replay.take(&[b"\xe2", between.as_bytes(), b"\x9b6n"].concat());
            assert!(!replay.finish(3).0.contains(&0x9b), "{between:?}");
        }
    }

    #[test]
    fn every_control_of_the_second_kind_is_left_out_and_every_character_beside_them_is_shown() {
        for code in 0x80..=0xbf_u8 {
            let character = char::from(code).to_string();
            let want = if code < 0xa0 { "" } else { &character };
            // In the middle of other text, which is looked at in one go, and byte by byte.
            let text = format!("a{character}\x18b");
            assert_eq!(replayed(text.as_bytes()), format!("a{want}b"), "{code:#x}");
            let mut replay = Replay::default();
            text.bytes().for_each(|byte| replay.take(&[byte]));
            assert_eq!(replay.finish(3).0, format!("a{want}b").into_bytes(), "{code:#x}");
        }
        for begins_a_string in ['\u{90}', '\u{98}', '\u{9d}', '\u{9e}', '\u{9f}'] {
            let text = format!("a{begins_a_string}hidden\u{9c}b");
            assert_eq!(replayed(text.as_bytes()), "ab", "{begins_a_string:?}");
        }
    }

    #[test]
    fn nothing_goes_on_behind_a_gap() {
        let check = |before: &[u8], after: &[u8], want: &str| {
            let mut replay = Replay::default();
            replay.take(before);
            replay.gap();
            replay.take(after);
            let (text, _, begun) = replay.finish(3);
            assert_eq!((String::from_utf8(text).unwrap().as_str(), begun.len()), (want, 0));
        };
        check(b"a", b"b", "a\r\nb");
        check(b"a\r\n", b"b", "a\r\nb");
        check(b"", b"b", "b");
        check(b"a\x1b]0;ti", b"tle\r\nb", "a\r\ntle\r\nb");
        check(b"a\x1b[3", b"1mb", "a\r\n1mb");
        check(b"1\r\n2\r\n3", b"4\r\n5", "3\r\n4\r\n5");
        check(b"a\x1b[?1049hx", b"y\x1b[?1049lb", "ab");
    }

    #[test]
    fn a_program_that_has_the_screen_draws_itself() {
        assert_eq!(replayed(b"$ vim\r\n\x1b[?1049h\x1b[Htext"), "");
        assert_eq!(replayed(b"$ vim\r\n\x1b[?1049h\x1b[Htext\n\n\n\x1b[?1049l$ "), "$ vim\r\n$ ");
    }

    #[test]
    fn a_sequence_that_is_not_ended_is_left_to_what_follows() {
        let mut replay = Replay::default();
        replay.take(b"a\x1b[3");
        let (text, _, begun) = replay.finish(3);
        assert_eq!((text.as_slice(), begun.as_slice()), (&b"a"[..], &b"\x1b[3"[..]));
    }

    #[test]
    fn it_is_the_same_in_whatever_pieces_the_output_comes() {
        let output = "one\r\n\x1b[31mtwo\x1b[m\r\n\x1b]0;title\x07three\r\n\x1b[?1049hx\r\n\
                      \x1b[?1049lfour\r\n\x07fi\x08ve\u{a9}\u{9b}6n\u{201c}\r\n\x1b[?2004h$ \x1b[3";
        let whole = |pieces: [&[u8]; 2]| {
            let mut replay = Replay::default();
            pieces.into_iter().for_each(|piece| replay.take(piece));
            replay.finish(3)
        };
        let want = whole([output.as_bytes(), b""]);
        assert_eq!(String::from_utf8_lossy(&want.0), "four\r\nfi\x08ve\u{a9}\u{201c}\r\n$ ");
        for at in 0..output.len() {
            let (head, tail) = output.as_bytes().split_at(at);
            assert_eq!(whole([head, tail]), want, "{at}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_bounded_and_not_cut_in_a_sequence() {
        let bar = "\r\x1b[38;5;200m#####\x1b[0m 50%".repeat(10_000);
        let shown = replayed(bar.as_bytes());
        assert!(shown.len() <= MAX_LINE_BYTES && bar.ends_with(&shown), "{}", shown.len());
        assert!(shown.starts_with(['\r', '\x1b', ' ']), "{shown:?}");
        assert_eq!(replayed(&[b'x'; 3 * MAX_LINE_BYTES]).trim_matches('x'), "");
    }
}
