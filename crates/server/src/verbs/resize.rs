//! Changing the size of a process's terminal.

use lastbyte_engine::Process;
use lastbyte_wire::{Error, ResizeRequest};

use super::refusal;
use crate::from_wire;

pub async fn resize(process: &Process, request: &ResizeRequest) -> Result<(), Error> {
    let size = from_wire::window_size(request.rows, request.cols)?;
    process.resize(size).await.map_err(refusal::of_resize)
}
