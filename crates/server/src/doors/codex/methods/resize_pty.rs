//! `process/resizePty`: as `command/exec/resize`.

use serde::Deserialize;

use super::call::{Control, Target};
use super::size::Size;
use crate::doors::codex::family::Family;
use crate::doors::codex::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Params {
    process_handle: String,
    size: Size,
}

impl Params {
    pub(super) fn check(self) -> Result<(Target, Control), Fault> {
        let size = self.size.check(Family::Process)?;
        Ok((Target::Process(self.process_handle), Control::Resize(size)))
    }
}
