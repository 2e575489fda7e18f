//! Output within a budget: the beginning and the end as text, and between them a fold that names its
//! byte range, the call that fetches it, and lines of it that look like errors.
//!
//! Pure: it reads a [`Source`] and returns text. The work is bounded, however long the log is: one
//! window at each end, and a search of the first and last part of the fold. No character is split.
//! `pages` has the other two ways to read, both forward from an offset.

use std::io;
use std::ops::Range;
use std::sync::LazyLock;

use lastbyte_output::decode::character_across;
use lastbyte_output::views::search::{Query, Reading, compile, search};
use lastbyte_output::views::text::{TextLine, text};
use lastbyte_output::views::{Read, Source};
use regex::bytes::Regex;

mod pages;
#[cfg(test)]
mod tests;

pub(super) use pages::{Raw, RawPage, last_lines, raw_page, text_page};

/// How long an answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    tokens: u64,
}

impl Budget {
    /// Less would not hold the facts.
    pub(super) const LEAST: u64 = 400;
    pub(super) const USUAL: u64 = 8_000;
    /// A line that fits is never longer than the text view keeps.
    pub(super) const MOST: u64 = 20_000;
    /// English and source code have about four.
    const BYTES_PER_TOKEN: u64 = 3;

    /// Brought into the range that is possible.
    pub(super) fn new(tokens: Option<u64>) -> Self {
        Self { tokens: tokens.unwrap_or(Self::USUAL).clamp(Self::LEAST, Self::MOST) }
    }

    pub(super) fn bytes(self) -> usize {
        (self.tokens * Self::BYTES_PER_TOKEN) as usize
    }
}

/// How much is read at each end.
const WINDOW: u64 = 1 << 20;
/// The longest note about a fold: three offsets, a length and an id.
pub(super) const NOTE: usize = 280;
/// How many lines of a fold are shown, half of them its first.
const MOST_HINTS: usize = 10;
/// The longest of them.
const HINT_BYTES: usize = 160;
/// How much of a fold is searched for its first ones, and for its last.
const SEARCHED_FIRST: u64 = 8 << 20;
const SEARCHED_LAST: u64 = 512 << 10;

/// Words of lines that are worth showing.
static LOOKS_LIKE_AN_ERROR: LazyLock<Regex> = LazyLock::new(|| {
    let words = r"(?i-u)\b(error|errors|fatal|panic|panicked|failed|failure|exception|traceback|segmentation fault|undefined reference|no such file|permission denied|cannot|assertion)\b";
    compile(words).expect("it is a pattern")
});

/// The output in `range`: all of it if it fits, else its beginning and its end.
pub(super) fn excerpt(
    source: &dyn Source,
    range: Range<u64>,
    budget: usize,
    id: &str,
) -> io::Result<String> {
    let end = range.end.min(source.end());
    let range = range.start.min(end)..end;
    if let Some(whole) = whole(source, range.clone(), budget)? {
        return Ok(whole);
    }
    let for_hints = (budget / 5).min(MOST_HINTS * (HINT_BYTES + 40));
    let room = budget.saturating_sub(NOTE + for_hints);
    let head = head(source, range.clone(), room / 2)?;
    let tail = tail(source, head.end..range.end, room - head.text.len(), usize::MAX)?;
    let mut shown = head.text;
    let fold = head.end..tail.start;
    if !fold.is_empty() {
        shown.push_str(&note(&fold, id));
        shown.push_str(&hints(source, fold, for_hints)?);
    }
    shown.push_str(&tail.text);
    Ok(shown)
}

/// Text that ends at an offset of the log.
struct Head {
    text: String,
    end: u64,
}

/// Text that starts at one.
struct Tail {
    start: u64,
    text: String,
}

/// The call that fetches a fold.
fn note(fold: &Range<u64>, id: &str) -> String {
    let Range { start, end } = fold;
    let length = end - start;
    format!(
        "[folded: bytes {start}..{end}; fetch {length} bytes with \
         read_output {{\"process_id\":\"{id}\",\"offset\":{start},\"length\":{length}}}]\n"
    )
}

/// `None` if it does not fit.
fn whole(source: &dyn Source, range: Range<u64>, budget: usize) -> io::Result<Option<String>> {
    if range.end - range.start > WINDOW {
        return Ok(None);
    }
    let view = text(source, range.clone(), budget)?;
    if view.rest.is_some() || view.lines.iter().any(|line| line.cut.is_some()) {
        return Ok(None);
    }
    let mut shown = Shown::new(source, range.start);
    view.lines.iter().for_each(|line| shown.line(line));
    shown.gap(range.end);
    Ok((shown.text.len() <= budget).then_some(shown.text))
}

/// As much as fits from the start.
fn head(source: &dyn Source, range: Range<u64>, room: usize) -> io::Result<Head> {
    let window = character_start(source, range.end.min(range.start + WINDOW))?.max(range.start);
    let view = text(source, range.start..window, room)?;
    let is_whole = view.rest.is_none();
    let mut lines = view.lines;
    if is_whole && window < range.end && lines.len() > 1 {
        // Its end may lie past the window.
        lines.pop();
    }
    let mut shown = Shown::new(source, range.start);
    for line in lines.iter().take_while(|line| line.cut.is_none()) {
        let before = (shown.text.len(), shown.at);
        shown.line(line);
        if shown.text.len() > room {
            shown.text.truncate(before.0);
            shown.at = before.1;
            return with_part_of_line(source, shown, range.end, room);
        }
    }
    if is_whole && window == range.end && lines.iter().all(|line| line.cut.is_none()) {
        shown.gap(range.end);
        let end = if shown.text.len() <= room { range.end } else { shown.at };
        return Ok(Head { text: shown.text, end });
    }
    with_part_of_line(source, shown, range.end, room)
}

/// Adds the beginning of a line that does not fit, if it is long.
fn with_part_of_line(
    source: &dyn Source,
    shown: Shown<'_>,
    end: u64,
    room: usize,
) -> io::Result<Head> {
    let Shown { text: mut whole_lines, at, .. } = shown;
    let left = room.saturating_sub(whole_lines.len() + 1);
    if left <= room / 4 {
        return Ok(Head { text: whole_lines, end: at });
    }
    // A byte that is not UTF-8 takes three as text.
    for most in [left, left / 3] {
        let until = line_end(source, at..end.min(at + most as u64))?;
        let until = if until < end { character_start(source, until)? } else { until };
        let part = part(source, at..until)?;
        if part.len() <= left && until > at {
            whole_lines.push_str(&part);
            whole_lines.push('\n');
            return Ok(Head { text: whole_lines, end: until });
        }
    }
    Ok(Head { text: whole_lines, end: at })
}

/// As much as fits before the end, at most this many lines.
fn tail(
    source: &dyn Source,
    range: Range<u64>,
    room: usize,
    most_lines: usize,
) -> io::Result<Tail> {
    let from = range.end.saturating_sub(WINDOW).max(range.start);
    let window = if from > range.start { character_start(source, from)? } else { from };
    let mut lines = text(source, window..range.end, usize::MAX / 2)?.lines;
    if window > range.start && lines.len() > 1 {
        // Its start may lie before the window.
        lines.remove(0);
    }
    let (mut start, mut taken, mut used) = (range.end, lines.len(), 0);
    while let Some(line) = taken.checked_sub(1).map(|nth| &lines[nth]) {
        let mut alone = Shown::new(source, line.range.start);
        alone.line(line);
        alone.gap(start);
        let fits = line.cut.is_none() && used + alone.text.len() <= room;
        if !fits || lines.len() - taken >= most_lines {
            break;
        }
        used += alone.text.len();
        start = line.range.start;
        taken -= 1;
    }
    if taken == 0 && start > range.start && lines.len() < most_lines && window == range.start {
        // What is left has no text, or was dropped.
        let mut gap = Shown::new(source, range.start);
        gap.gap(start);
        if used + gap.text.len() <= room {
            start = range.start;
        }
    }
    let mut shown = Shown::new(source, start);
    lines[taken..].iter().for_each(|line| shown.line(line));
    shown.gap(range.end);
    let enough = lines.len() - taken >= most_lines;
    let left = room.saturating_sub(used + 1);
    if taken == 0 || enough || left <= room / 4 {
        return Ok(Tail { start, text: shown.text });
    }
    let line = lines[taken - 1].range.start.max(range.start);
    for most in [left, left / 3] {
        let from = start.saturating_sub(most as u64).max(line);
        let from = if from > line { character_end(source, from)? } else { from };
        let part = part(source, from..start)?;
        if part.len() <= left && from < start {
            return Ok(Tail { start: from, text: format!("{part}\n{}", shown.text) });
        }
    }
    Ok(Tail { start, text: shown.text })
}

/// A part of one line, as text.
fn part(source: &dyn Source, range: Range<u64>) -> io::Result<String> {
    let lines = text(source, range, usize::MAX / 2)?.lines;
    Ok(lines.into_iter().map(|line| line.text).collect::<Vec<_>>().join("\n"))
}

/// The end of the first line in the range, or of the range.
fn line_end(source: &dyn Source, range: Range<u64>) -> io::Result<u64> {
    let bytes = read(source, range.clone())?;
    let newline = bytes.iter().position(|byte| *byte == b'\n');
    Ok(range.start + newline.map_or(bytes.len(), |newline| newline + 1) as u64)
}

/// The bytes from the start of the range that are there.
fn read(source: &dyn Source, range: Range<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    let mut count = 0;
    while count < bytes.len() {
        match source.read_at(range.start + count as u64, &mut bytes[count..])? {
            Read::Bytes(0) | Read::Dropped(_) | Read::Other { .. } => break,
            Read::Bytes(more) => count += more,
        }
    }
    bytes.truncate(count);
    Ok(bytes)
}

/// The character that a cut at this offset would split.
fn split_character(source: &dyn Source, at: u64) -> io::Result<Option<Range<u64>>> {
    let from = at.saturating_sub(3);
    let bytes = read(source, from..(at + 3).min(source.end()).max(from))?;
    let found = character_across(&bytes, (at - from) as usize);
    Ok(found.map(|found| from + found.start as u64..from + found.end as u64))
}

fn character_start(source: &dyn Source, at: u64) -> io::Result<u64> {
    Ok(split_character(source, at)?.map_or(at, |character| character.start))
}

fn character_end(source: &dyn Source, at: u64) -> io::Result<u64> {
    Ok(split_character(source, at)?.map_or(at, |character| character.end))
}

/// Lines as they are shown, with what was dropped between them.
struct Shown<'a> {
    source: &'a dyn Source,
    text: String,
    at: u64,
}

impl<'a> Shown<'a> {
    fn new(source: &'a dyn Source, at: u64) -> Self {
        Self { source, text: String::new(), at }
    }

    fn line(&mut self, line: &TextLine) {
        self.gap(line.range.start);
        self.text.push_str(&line.text);
        self.text.push('\n');
        self.at = line.range.end;
        let Some(repeats) = &line.repeats else { return };
        let Range { start, end } = repeats.range;
        let count = repeats.count;
        let note = format!("[the line above {count} more times: bytes {start}..{end}]\n");
        let literal = (line.text.len() as u64 + 1).saturating_mul(count);
        if literal <= note.len() as u64 {
            for _ in 0..count {
                self.text.push_str(&line.text);
                self.text.push('\n');
            }
        } else {
            self.text.push_str(&note);
        }
        self.at = end;
    }

    /// Names what was dropped up to this offset.
    fn gap(&mut self, to: u64) {
        for gone in self.source.dropped() {
            let (start, end) = (gone.start.max(self.at), gone.end.min(to));
            if start < end {
                self.text.push_str(&format!("[dropped: bytes {start}..{end} are gone]\n"));
            }
        }
        self.at = self.at.max(to);
    }
}

/// A log that ends earlier.
struct UpTo<'a> {
    source: &'a dyn Source,
    end: u64,
}

impl Source for UpTo<'_> {
    fn end(&self) -> u64 {
        self.end
    }

    fn dropped(&self) -> &[Range<u64>] {
        let dropped = self.source.dropped();
        &dropped[..dropped.partition_point(|gone| gone.start < self.end)]
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<Read> {
        let left = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        let most = left.min(into.len());
        self.source.read_at(at, &mut into[..most])
    }
}

/// The first and the last lines of a fold that look like errors, with their offsets.
fn hints(source: &dyn Source, fold: Range<u64>, room: usize) -> io::Result<String> {
    let up_to = UpTo { source, end: fold.end };
    let find = |from: u64, max_matches, max_scanned| {
        let query = Query {
            regex: LOOKS_LIKE_AN_ERROR.clone(),
            reading: Reading::Plain,
            from,
            before: 0,
            after: 0,
            max_matches,
            max_bytes: 1 << 20,
            max_scanned,
        };
        search(&up_to, &query).map(|found| found.matches)
    };
    let mut lines = find(fold.start, MOST_HINTS / 2, SEARCHED_FIRST)?;
    let searched_to = lines.last().map_or(fold.start, |last| last.line.range.end);
    let from = fold.end.saturating_sub(SEARCHED_LAST).max(searched_to);
    let mut last = find(from, 10_000, SEARCHED_LAST)?;
    lines.extend(last.drain(last.len().saturating_sub(MOST_HINTS / 2)..));
    let mut shown = String::new();
    for found in lines {
        let text = String::from_utf8_lossy(&found.line.text);
        let text = text.trim();
        let text = &text[..text.floor_char_boundary(HINT_BYTES)];
        let line = format!("[  byte {}: {text}]\n", found.line.range.start);
        if shown.len() + line.len() + 40 > room {
            break;
        }
        shown.push_str(&line);
    }
    if !shown.is_empty() {
        shown.insert_str(0, "[lines in it that look like errors:]\n");
    }
    Ok(shown)
}
