//! Tokens for TCP clients: what each allows, and until when.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `POST /v1/tokens`. Without `session` and `read_only` the token allows everything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CreateTokenRequest {
    /// Allow only the processes of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Allow only what changes nothing. Not together with `session`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The token expires after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// What it is for, shown in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl CreateTokenRequest {
    /// The longest note, in bytes.
    pub const LONGEST_NOTE: usize = 200;
}

/// A new token: the only answer with its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreateTokenAnswer {
    /// For `Authorization: Bearer TOKEN`. It is not stored, and not shown again.
    pub token: String,
    pub info: TokenInfo,
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenInfo {
    pub id: String,
    pub scope: TokenScope,
    pub created_unix_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_unix_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a token allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TokenScope {
    /// Everything.
    All,
    /// Everything that changes nothing.
    ReadOnly,
    /// The processes of one session.
    Session { name: String },
}

/// `GET /v1/tokens`: oldest first. Expired tokens are listed until they are revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenList {
    pub tokens: Vec<TokenInfo>,
}
