//! Writing to a process's standard input.

use lastbyte_engine::{Process, WriteError};
use lastbyte_wire::{Error, WriteAnswer, WriteQuery};

use super::refusal;

pub async fn write(
    process: &Process,
    bytes: Vec<u8>,
    query: &WriteQuery,
) -> Result<WriteAnswer, Error> {
    let written = match query.close {
        Some(true) => process.write_and_close(bytes, query.offset).await,
        Some(false) | None => process.write(bytes, query.offset).await,
    };
    let written = written.map_err(refusal::from_write)?;
    Ok(WriteAnswer { accepted: written.accepted })
}

/// Like [`write()`], but waits while the command does not read: for a caller that can stop taking
/// input meanwhile.
pub async fn write_when_there_is_room(
    process: &Process,
    bytes: &[u8],
    offset: Option<u64>,
) -> Result<(), Error> {
    let mut state = process.stdin().ok_or_else(|| refusal::from_write(WriteError::NotOpen))?;
    loop {
        // Marked as seen before the write, so that what is read after it wakes us.
        state.mark_unchanged();
        match process.write(bytes.to_vec(), offset).await {
            Err(WriteError::QueueFull { .. }) => {
                // The owner is gone; the next write says so.
                _ = state.changed().await;
            }
            written => return written.map(drop).map_err(refusal::from_write),
        }
    }
}
