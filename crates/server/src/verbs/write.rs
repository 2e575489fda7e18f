//! Writing to a process's standard input.

use lastbyte_engine::Process;
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
    let written = written.map_err(refusal::of_write)?;
    Ok(WriteAnswer { accepted: written.accepted })
}
