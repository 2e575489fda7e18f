use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The bytes of the log from `start` up to, not with, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    pub start: u64,
    pub end: u64,
}
