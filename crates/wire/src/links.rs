//! Links to the page, what a page trades them for, and tickets for its WebSockets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `POST /v1/links`. Without `process` the page sees what the client sees.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CreateLinkRequest {
    /// Let the page reach only this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// Hand the keyboard of the process to a person: access ends when the person is done, or has left.
    /// Needs `process`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub once: Option<bool>,
    /// The link expires after this time, at most a day. The default is 5 minutes.
    #[schemars(range(min = 1, max = 86_400_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

impl CreateLinkRequest {
    /// The longest time until a link expires.
    pub const LONGEST_MS: u64 = 24 * 3600 * 1000;
}

/// A new link: the only answer with its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreateLinkAnswer {
    /// To open in a browser. It works once.
    pub url: String,
    pub expires_unix_ns: u64,
}

/// `POST /v1/links/trade`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TradeLinkRequest {
    /// What follows `#link=` in the URL.
    pub link: String,
}

/// What the page may use from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TradeLinkAnswer {
    /// For `Authorization: Bearer TOKEN`.
    pub token: String,
    /// The only process that it reaches; absent if it is not bound to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// The keyboard of the process is handed to the person at this page.
    pub hand_over: bool,
    /// It may only read.
    pub read_only: bool,
}

/// `POST /v1/tickets`: opens one WebSocket, for which a browser cannot send a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TicketAnswer {
    /// For `GET /v1/processes/{id}/attach?ticket=TICKET`, with the scope of the token.
    pub ticket: String,
    pub expires_unix_ns: u64,
}
