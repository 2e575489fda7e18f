//! `process/kill`: as `command/exec/terminate`.

use serde::Deserialize;

use super::call::{Control, Target};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Params {
    process_handle: String,
}

impl Params {
    pub(super) fn into_control(self) -> (Target, Control) {
        (Target::Process(self.process_handle), Control::Terminate)
    }
}
