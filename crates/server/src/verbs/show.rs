//! Looking at one process.

use lastbyte_engine::Process;
use lastbyte_wire as wire;

use crate::to_wire;

/// What it is at this instant.
pub fn show(process: &Process) -> wire::Process {
    to_wire::process(process.about(), &process.snapshot())
}

/// Who lives of its tree.
pub async fn survivors(process: &Process) -> Vec<wire::Survivor> {
    process.survivors().await.into_iter().map(to_wire::survivor).collect()
}
