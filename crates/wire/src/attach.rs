//! `GET /v1/processes/{id}/attach`: input and output of a process over one WebSocket.
//!
//! Binary messages are bytes: from the client for standard input, from the server those of the
//! log, in order and without a gap but where one is told. Text messages are the words below.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Ending, Error, Range};

/// Where the output begins, and how far it goes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AttachQuery {
    /// The cursor to begin at; negative counts from the end. The beginning unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// Go on after the ending, with what survivors write, until the log closes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    /// Nobody else writes: the first byte of input is the one at `accepted`, and what an earlier
    /// connection still brings is not written twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_writer: Option<bool>,
}

/// What a client says besides input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AttachRequest {
    /// The terminal has another size.
    Resize {
        #[schemars(range(min = 1))]
        rows: u16,
        #[schemars(range(min = 1))]
        cols: u16,
    },
    /// No more input comes.
    CloseStdin,
}

/// What the server says besides output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AttachNotice {
    /// The first message: the cursor of the first byte that follows.
    Attached {
        cursor: u64,
        /// How many bytes of input were accepted so far, from whomever; absent when none is taken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        accepted: Option<u64>,
    },
    /// The bytes of this range are gone, and the next message goes on behind them.
    Dropped { range: Range },
    /// The output proper is complete.
    Ending { ending: Box<Ending> },
    /// Something the client sent was not done.
    Refused { error: Error },
}
