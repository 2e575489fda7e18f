//! Reading on from an offset, as text or as the bytes themselves; and the last lines.

use std::io;
use std::ops::Range;

use lastbyte_output::decode::unfinished;
use lastbyte_output::views::Source;
use lastbyte_output::views::raw::{Segment, since};

use super::{NOTE, head, note, tail};

/// Bytes, exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct RawPage {
    /// What these are the bytes of.
    pub(in super::super) range: Range<u64>,
    pub(in super::super) content: Raw,
    /// Before the bytes: asked for, and gone.
    pub(in super::super) dropped: Option<Range<u64>>,
}

/// Bytes as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Raw {
    /// They are UTF-8.
    Text(String),
    Base64(String),
}

/// Shorter text before a byte that is not UTF-8 is encoded with what follows.
const WORTHWHILE_TEXT: usize = 1024;

/// Text from the start of the range, as much as fits.
pub(in super::super) fn text_page(
    source: &dyn Source,
    range: Range<u64>,
    budget: usize,
    id: &str,
) -> io::Result<String> {
    let end = range.end.min(source.end());
    let range = range.start.min(end)..end;
    let page = head(source, range.clone(), budget)?;
    if page.end >= end {
        return Ok(page.text);
    }
    let page = head(source, range, budget.saturating_sub(NOTE))?;
    let rest = note(&(page.end..end), id);
    Ok(page.text + &rest)
}

/// The last lines before the end.
pub(in super::super) fn last_lines(
    source: &dyn Source,
    count: usize,
    budget: usize,
    id: &str,
) -> io::Result<String> {
    let tail = tail(source, 0..source.end(), budget.saturating_sub(NOTE), count)?;
    let before = if tail.start > 0 { note(&(0..tail.start), id) } else { String::new() };
    Ok(before + &tail.text)
}

/// The bytes at an offset: as text if they are UTF-8, else in base64. Base64 has few characters in a
/// token, so it counts twice.
pub(in super::super) fn raw_page(
    source: &dyn Source,
    range: Range<u64>,
    budget: usize,
) -> io::Result<RawPage> {
    let end = range.end.min(source.end());
    let start = range.start.min(end);
    let most = usize::try_from(end - start).unwrap_or(usize::MAX).min(budget);
    let (mut dropped, mut found) = (None, (start, Vec::new()));
    if most > 0 {
        for segment in since(source, start, most)?.segments {
            match segment {
                Segment::Dropped(gone) => {
                    let gone = gone.start..gone.end.min(end);
                    found.0 = gone.end;
                    dropped = Some(gone);
                }
                Segment::Bytes { range, bytes } => {
                    found = (range.start, bytes);
                    break;
                }
            }
        }
    }
    let (at, mut bytes) = found;
    bytes.truncate(usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX));
    let content = as_text(&mut bytes, budget);
    Ok(RawPage { range: at..at + bytes.len() as u64, content, dropped })
}

/// Also shortens the bytes to those that are shown.
fn as_text(bytes: &mut Vec<u8>, budget: usize) -> Raw {
    let valid = match str::from_utf8(bytes) {
        Ok(text) => return Raw::Text(text.to_owned()),
        Err(error) => error.valid_up_to(),
    };
    let cut_in_a_character = valid > 0 && bytes.len() - valid == unfinished(bytes);
    if valid >= WORTHWHILE_TEXT || cut_in_a_character {
        bytes.truncate(valid);
        return Raw::Text(String::from_utf8_lossy(bytes).into_owned());
    }
    bytes.truncate((budget * 3 / 8).max(1));
    Raw::Base64(base64_simd::STANDARD.encode_to_string(&*bytes))
}
