//! Stamps by where they lie and by when they were made. What was given back is skipped.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::block::{self, first_from};
use crate::log::Stamp;
use crate::log::quota::BLOCK;

/// Stamps, and the offset up to which there are no others.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::log) struct Found {
    pub(in crate::log) stamps: Vec<Stamp>,
    pub(in crate::log) until: u64,
}

/// The stamp that `range` begins with, which may lie before it, and those within. After `most` of
/// them it goes no further than the block it is in.
pub(in crate::log) fn within(file: &File, range: &Range<u64>, most: usize) -> io::Result<Found> {
    let end = blocks(file)?;
    let mut stamps = Vec::new();
    let mut block = last_block(file, end, |first| first.offset <= range.start)?;
    loop {
        let read = block::read(file, block)?.into_iter();
        stamps.extend(read.take_while(|stamp| stamp.offset < range.end));
        block = match first_from(file, block + 1, end)? {
            Some((_, first)) if stamps.len() >= most && first.offset < range.end => {
                return Ok(Found { stamps, until: first.offset });
            }
            Some((following, first)) if first.offset < range.end => following,
            Some(_) | None => return Ok(Found { stamps, until: range.end }),
        }
    }
}

/// The first stamp that was made at this time or later.
pub(in crate::log) fn made_since(file: &File, at_ms: u64) -> io::Result<Option<Stamp>> {
    let end = blocks(file)?;
    let block = last_block(file, end, |first| first.at_ms < at_ms)?;
    let found = block::read(file, block)?.into_iter().find(|stamp| stamp.at_ms >= at_ms);
    match found {
        Some(stamp) => Ok(Some(stamp)),
        None => Ok(first_from(file, block + 1, end)?.map(|(_, first)| first)),
    }
}

fn blocks(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len().div_ceil(BLOCK))
}

/// The last block of those before `end` whose first stamp is still early enough. A hole is
/// passed over: the next block that is there answers for it, and where there is none it is too late.
fn last_block(file: &File, end: u64, is_early: impl Fn(Stamp) -> bool) -> io::Result<u64> {
    let (mut low, mut high) = (0, end);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        match first_from(file, middle, high)? {
            Some((found, first)) if is_early(first) => low = found,
            _ => high = middle,
        }
    }
    Ok(low)
}
