//! `initialize`: who the client is and what it can do.

use std::collections::HashSet;

use axum::http::HeaderValue;
use serde::{Deserialize, Serialize};

use super::call::Call;
use crate::doors::codex::door::Door;
use crate::doors::codex::envelope::{RequestId, success};
use crate::doors::codex::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Params {
    client_info: ClientInfo,
    #[serde(default)]
    capabilities: Option<Capabilities>,
}

#[derive(Debug, Deserialize)]
struct ClientInfo {
    name: String,
    version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Capabilities {
    #[serde(default)]
    experimental_api: bool,
    #[serde(default)]
    opt_out_notification_methods: Option<Vec<String>>,
}

/// What was agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::doors::codex) struct Handshake {
    experimental: bool,
    opted_out: HashSet<String>,
}

/// What the server says of itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    user_agent: String,
    codex_home: String,
    platform_family: &'static str,
    platform_os: &'static str,
}

impl Params {
    pub(super) fn check(self, door: &Door, id: &RequestId) -> Result<Call, Fault> {
        let Self { client_info: ClientInfo { name, version }, capabilities } = self;
        if HeaderValue::from_str(&name).is_err() {
            return Err(Fault::invalid_request(format!(
                "Invalid clientInfo.name: '{name}'. Must be a valid HTTP header value."
            )));
        }
        let capabilities = capabilities.unwrap_or_default();
        let opted_out = capabilities.opt_out_notification_methods.unwrap_or_default();
        let handshake = Handshake {
            experimental: capabilities.experimental_api,
            opted_out: opted_out.into_iter().collect(),
        };
        let answer = Answer::new(&name, &version, door);
        Ok(Call::Initialize(handshake, success(id, &answer)))
    }
}

impl Answer {
    fn new(name: &str, version: &str, door: &Door) -> Self {
        let (own, machine) = (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
        Self {
            user_agent: format!("lastbyte/{own} (linux; {machine}) ({name}; {version})"),
            codex_home: door.settings().home.display().to_string(),
            platform_family: "unix",
            platform_os: "linux",
        }
    }
}

impl Handshake {
    /// Refuses what the client did not say it is ready for.
    pub(super) fn require_experimental(&self, what: &str) -> Result<(), Fault> {
        match self.experimental {
            true => Ok(()),
            false => {
                let message = format!("{what} requires experimentalApi capability");
                Err(Fault::invalid_request(message))
            }
        }
    }

    /// Whether the client wants these notifications.
    pub(in crate::doors::codex) fn wants(&self, notification: &str) -> bool {
        !self.opted_out.contains(notification)
    }
}
