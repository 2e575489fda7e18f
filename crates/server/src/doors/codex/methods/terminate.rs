//! `command/exec/terminate`: the end of a command and of all that it has started.

use serde::Deserialize;

use super::call::{Control, Target};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Params {
    process_id: String,
}

impl Params {
    pub(super) fn into_control(self) -> (Target, Control) {
        (Target::Command(self.process_id), Control::Terminate)
    }
}
