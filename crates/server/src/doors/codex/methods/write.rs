//! `command/exec/write`: bytes for a command's standard input, its end, or both.

use serde::Deserialize;

use super::call::{Control, Target};
use crate::doors::codex::base64;
use crate::doors::codex::family::Family;
use crate::doors::codex::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Params {
    process_id: String,
    #[serde(default)]
    delta_base64: Option<String>,
    #[serde(default)]
    close_stdin: bool,
}

impl Params {
    pub(super) fn check(self) -> Result<(Target, Control), Fault> {
        let control = write(Family::Command, self.delta_base64, self.close_stdin)?;
        Ok((Target::Command(self.process_id), control))
    }
}

/// The write that both families have.
pub(super) fn write(
    family: Family,
    delta_base64: Option<String>,
    close: bool,
) -> Result<Control, Fault> {
    if delta_base64.is_none() && !close {
        return Err(family.nothing_to_write());
    }
    let bytes = base64::decode(&delta_base64.unwrap_or_default())
        .map_err(|why| Fault::invalid_params(format!("invalid deltaBase64: {why}")))?;
    Ok(Control::Write { bytes, close })
}
