//! `process/writeStdin`: as `command/exec/write`.

use serde::Deserialize;

use super::call::{Control, Target};
use super::write::write;
use crate::doors::codex::family::Family;
use crate::doors::codex::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Params {
    process_handle: String,
    #[serde(default)]
    delta_base64: Option<String>,
    #[serde(default)]
    close_stdin: bool,
}

impl Params {
    pub(super) fn check(self) -> Result<(Target, Control), Fault> {
        let control = write(Family::Process, self.delta_base64, self.close_stdin)?;
        Ok((Target::Process(self.process_handle), control))
    }
}
