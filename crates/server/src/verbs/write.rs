//! Writing to a process's standard input, bytes and keys.

mod cursor_mode;
mod keys;

use lastbyte_engine::{Keyboard, Process, Streams, WriteError};
use lastbyte_wire::{Error, WriteAnswer, WriteQuery};

use super::refusal;
use keys::{CursorKeys, Key, Typed};

pub async fn write(
    process: &Process,
    bytes: Vec<u8>,
    query: &WriteQuery,
) -> Result<WriteAnswer, Error> {
    let bytes = match &query.keys {
        Some(keys) => with_keys(process, bytes, keys.split(',').map(str::trim)).await?,
        None => bytes,
    };
    let written = match query.close {
        Some(true) => process.write_and_close(bytes, query.offset).await,
        Some(false) | None => process.write(bytes, query.offset).await,
    };
    let written = written.map_err(|error| refusal::from_write_to(process, error))?;
    Ok(WriteAnswer { accepted: written.accepted })
}

/// Adds what these keys send to the bytes.
pub async fn with_keys<'a>(
    process: &Process,
    mut bytes: Vec<u8>,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<u8>, Error> {
    let keys = names.into_iter().map(|name| Ok((name, Key::parse(name)?)));
    let keys = keys.collect::<Result<Vec<(&str, Key)>, Error>>()?;
    let typed = match process.spec().streams {
        Streams::Merged | Streams::Split => Typed::Pipe,
        Streams::Pty(_) if keys.iter().any(|(_, key)| key.depends_on_mode()) => {
            let process_read = process.clone();
            let mode = move || cursor_mode::of(&process_read);
            Typed::Terminal(refusal::read_blocking(process, "reading the output", mode).await?)
        }
        Streams::Pty(_) => Typed::Terminal(CursorKeys::Normal),
    };
    for (name, key) in keys {
        bytes.extend(key.bytes(name, typed)?);
    }
    Ok(bytes)
}

/// Like [`write()`], but waits while the command does not read: for a caller that can stop taking
/// input meanwhile.
pub async fn write_when_there_is_room(
    process: &Process,
    keyboard: Option<&Keyboard>,
    bytes: &[u8],
    offset: Option<u64>,
) -> Result<(), Error> {
    let mut state = process.stdin().ok_or_else(|| refusal::from_write(WriteError::NotOpen))?;
    loop {
        // Marked as seen before the write, so that what is read after it wakes us.
        state.mark_unchanged();
        let written = match keyboard {
            Some(keyboard) => keyboard.write(bytes.to_vec(), offset).await,
            None => process.write(bytes.to_vec(), offset).await,
        };
        match written {
            Err(WriteError::QueueFull { .. }) => {
                // The owner is gone; the next write says so.
                _ = state.changed().await;
            }
            written => {
                let refused = |error| refusal::from_write_to(process, error);
                return written.map(drop).map_err(refused);
            }
        }
    }
}
