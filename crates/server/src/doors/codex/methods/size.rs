//! The size of a terminal, as requests have it.

use lastbyte_engine::WindowSize;
use serde::Deserialize;

use crate::doors::codex::family::Family;
use crate::doors::codex::fault::Fault;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Size {
    rows: u16,
    cols: u16,
}

impl Size {
    pub(super) fn check(self, family: Family) -> Result<WindowSize, Fault> {
        let Self { rows, cols } = self;
        match rows == 0 || cols == 0 {
            true => Err(family.zero_size()),
            false => Ok(WindowSize { rows, cols }),
        }
    }
}
