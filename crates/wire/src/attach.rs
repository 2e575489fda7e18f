//! `GET /v1/processes/{id}/attach`: input and output of a process over one WebSocket.
//!
//! Binary messages are bytes: from the client for standard input, from the server the bytes of the
//! log, in order and without gaps other than those announced. Text messages are the types below.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Ending, Error, Keyboard, Range};

/// Where the output starts, and when it stops.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachQuery {
    /// The cursor to start at; a negative one counts from the end. The default is 0.
    pub from: Option<i64>,
    /// Continue after the ending, with output of surviving processes, until the log closes.
    pub late: Option<bool>,
    /// No other client writes: input continues at offset `accepted`, and bytes that an earlier
    /// connection sent are not written twice.
    pub only_writer: Option<bool>,
    /// A ticket instead of a token, for browsers.
    pub ticket: Option<String>,
}

/// A message of the client other than input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AttachRequest {
    /// Resize the terminal.
    Resize {
        #[schemars(range(min = 1))]
        rows: u16,
        #[schemars(range(min = 1))]
        cols: u16,
    },
    /// Close standard input.
    CloseStdin,
    /// Take the keyboard: nobody else can write until it is given back, or this client has gone.
    TakeKeyboard {
        /// Who has it, for the others; at most 64 bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Give the keyboard back. If it was handed over by a link, the person is done, and the connection
    /// ends.
    GiveBackKeyboard,
    /// Type a secret: while this is on, what is typed is not shown, and not kept. Needs the keyboard.
    SecretInput { on: bool },
}

impl AttachRequest {
    /// The longest name of a holder, in bytes.
    pub const LONGEST_NAME: usize = 64;
}

/// A message of the server other than output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AttachNotice {
    /// The first message: the cursor of the first byte of output.
    Attached {
        cursor: u64,
        /// How many bytes of input have been accepted so far, from all clients; absent if input is closed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        accepted: Option<u64>,
    },
    /// The bytes of this range were dropped; the output continues after them.
    Dropped { range: Range },
    /// The output is complete.
    Ending { ending: Box<Ending> },
    /// Who has the keyboard from now on. Absent if every client may write.
    Keyboard {
        /// It is this client.
        yours: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keyboard: Option<Keyboard>,
    },
    /// A message of the client was refused.
    Refused { error: Error },
}
