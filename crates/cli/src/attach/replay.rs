//! What of the output before an attach is shown: the screen of a terminal that has read it.
//!
//! The server makes it from the log, so that our terminal gets no old questions, which it would answer into the
//! program's input, and no old title or clipboard. A program that has the other screen gets that screen; of one that
//! writes lines the last ones are shown below what our terminal has on it.

use lastbyte_client::wire::{Content, OutputQuery, Process, Screen, Streams, View};
use lastbyte_client::{Client, ClientError};

use super::modes::{Drawing, Modes};
use super::sequences::Sequences;
use crate::stdio;

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

    fn of(screen: &Screen, cursor: i64, most_rows: usize) -> Self {
        let state = screen.ansi_state.as_deref().unwrap_or_default();
        let modes = modes_of(state);
        let shown = match modes.drawing() {
            Drawing::Screen => state.to_owned(),
            Drawing::Lines => last_lines(screen, most_rows) + &modes.turn_on(),
        };
        Self { cursor, shown: shown.into_bytes(), drawing: modes.drawing() }
    }
}

/// As if our terminal had been there all the time.
pub(crate) async fn last_screen(
    client: &Client,
    process: &Process,
) -> Result<InitialOutput, ClientError> {
    let size = stdio::size();
    // The output of a pipe has no size of its own.
    let own = (process.streams != Streams::Tty).then_some(size);
    let mut query = OutputQuery {
        view: Some(View::Screen),
        ansi: Some(true),
        rows: own.map(|size| size.rows.min(OutputQuery::MOST_ROWS_OR_COLS)),
        cols: own.map(|size| size.cols.min(OutputQuery::MOST_ROWS_OR_COLS)),
        ..OutputQuery::default()
    };
    loop {
        let output = client.output(&process.id, &query).await?;
        let Content::Screen { screen } = output.content else { return Ok(InitialOutput::at(0)) };
        let at = screen.ansi_at.unwrap_or(output.next);
        // What has not ended is left to what follows.
        if at < output.next && query.at.is_none() {
            query.at = Some(at);
            continue;
        }
        let most_rows = size.rows.saturating_sub(1).max(1);
        let cursor = i64::try_from(at).unwrap_or(i64::MAX);
        return Ok(InitialOutput::of(&screen, cursor, most_rows.into()));
    }
}

fn modes_of(state: &str) -> Modes {
    let (mut sequences, mut modes) = (Sequences::default(), Modes::default());
    for byte in state.bytes() {
        if let Some(item) = sequences.take(byte) {
            modes.apply(item);
        }
    }
    modes
}

/// Down to the cursor or the last row with text, and the cursor where it is.
fn last_lines(screen: &Screen, most: usize) -> String {
    let Screen { lines, ansi_lines, cursor, .. } = screen;
    let shown = ansi_lines.as_ref().unwrap_or(lines);
    let row = cursor.map(|cursor| usize::from(cursor.row));
    let Some(last) = lines.iter().rposition(|line| !line.is_empty()).max(row) else {
        return String::new();
    };
    let first = (last + 1).saturating_sub(most);
    let shown = shown.iter().take(last + 1).skip(first);
    let reset =
        |line: &String| if line.contains('\x1b') { format!("{line}\x1b[m") } else { line.clone() };
    let mut text = shown.map(reset).collect::<Vec<_>>().join("\r\n");
    if let Some(cursor) = cursor {
        let up = last - usize::from(cursor.row).max(first);
        let line = &lines[usize::from(cursor.row)];
        if up > 0 {
            text += &format!("\x1b[{up}A");
        }
        // It is there already, unless a character takes two columns or something moved it.
        if up > 0 || !line.is_ascii() || line.len() != usize::from(cursor.col) {
            text += &format!("\x1b[{}G", cursor.col + 1);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use lastbyte_client::wire::ScreenCursor;

    use super::*;

    fn screen(lines: &[&str], cursor: Option<(u16, u16)>, state: &str) -> Screen {
        let lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
        Screen {
            rows: 4,
            cols: 20,
            ansi_lines: Some(lines.iter().map(|line| line.replace("red", "\x1b[31mred")).collect()),
            lines,
            cursor: cursor.map(|(row, col)| ScreenCursor { row, col }),
            title: None,
            alternate: state.contains("1049h"),
            ansi_state: Some(state.to_owned()),
            ansi_at: Some(7),
        }
    }

    fn check(lines: &[&str], cursor: Option<(u16, u16)>, most: usize, want: &str) {
        let begin = InitialOutput::of(&screen(lines, cursor, "\x1b[?2004l\x1b>"), 7, most);
        assert_eq!((String::from_utf8(begin.shown).unwrap().as_str(), begin.cursor), (want, 7));
    }

    #[test]
    fn lines_are_shown_down_to_the_cursor_or_the_last_text() {
        check(&["", "", "", ""], Some((0, 0)), 3, "");
        check(&["one", "$ ", "", ""], Some((1, 2)), 3, "one\r\n$ ");
        check(&["one", "two", "", ""], Some((2, 0)), 3, "one\r\ntwo\r\n");
        check(&["one", "two", "three", "$ "], Some((3, 2)), 2, "three\r\n$ ");
        check(&["red", "b", "", ""], Some((1, 1)), 3, "\x1b[31mred\x1b[m\r\nb");
    }

    #[test]
    fn the_cursor_is_where_it_was() {
        check(&["one", "two", "", ""], Some((0, 1)), 3, "one\r\ntwo\x1b[1A\x1b[2G");
        check(&["one", "$", "", ""], Some((1, 2)), 3, "one\r\n$\x1b[3G");
        check(&["one", "two", "three", ""], Some((0, 0)), 2, "two\r\nthree\x1b[1A\x1b[1G");
        check(&["one", "", "", ""], None, 3, "one");
    }

    #[test]
    fn modes_are_set_and_the_other_screen_is_shown_whole() {
        let state = "\x1b[?25l\x1b[m\x1b[H\x1b[Jred\x1b[?2004h\x1b[?1l";
        let begin = InitialOutput::of(&screen(&["a", "", "", ""], None, state), 7, 3);
        assert_eq!(begin.shown, b"a\x1b[?2004h\x1b[?25l");
        let state = format!("\x1b[?1049h{state}");
        let begin = InitialOutput::of(&screen(&["a", "", "", ""], None, &state), 7, 3);
        assert_eq!((begin.shown, begin.drawing), (state.into_bytes(), Drawing::Screen));
    }
}
