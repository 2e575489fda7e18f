//! Finds stamps by offset and by time. Blocks that were given back are skipped.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::block::{self, first_from};
use crate::log::quota::BLOCK;
use crate::log::{Stamp, Stamped};

/// The stamp that `range` begins with, which may lie before it, and those within. Reads whole blocks
/// until it has at least `most` of them.
pub(in crate::log) fn within(file: &File, range: &Range<u64>, most: usize) -> io::Result<Stamped> {
    let end = blocks(file)?;
    let mut stamps = Vec::new();
    let mut block = last_block(file, end, |first| first.offset <= range.start)?;
    loop {
        let read = block::read(file, block)?.into_iter();
        stamps.extend(read.take_while(|stamp| stamp.offset < range.end));
        block = match first_from(file, block + 1, end)? {
            // Not before the range, as in a damaged index: a reader that goes on from there gets nowhere.
            Some((_, first))
                if stamps.len() >= most
                    && first.offset > range.start
                    && first.offset < range.end =>
            {
                return Ok(Stamped { stamps, until: first.offset });
            }
            Some((following, first)) if first.offset < range.end => following,
            Some(_) | None => return Ok(Stamped { stamps, until: range.end }),
        }
    }
}

/// The first stamp of this time or later.
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

/// The last block before `end` whose first stamp is early enough. A hole counts as the next block
/// that is there, and as late if there is none.
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
