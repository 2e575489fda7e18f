//! `initialize`: who the client is and what it supports.

use std::collections::HashSet;

use axum::http::HeaderValue;
use serde::Deserialize;
use serde_json::json;

use super::door::Door;
use super::methods::Call;
use crate::doors::rpc::{Fault, RequestId, success};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InitializeParams {
    client_info: ClientInfo,
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
    opt_out_notification_methods: Option<Vec<String>>,
}

/// What was agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Handshake {
    experimental: bool,
    opted_out: HashSet<String>,
}

impl InitializeParams {
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
        let answer = json!({
            "userAgent": user_agent(&name, &version),
            "codexHome": door.settings.home.display().to_string(),
            "platformFamily": "unix",
            "platformOs": "linux",
        });
        Ok(Call::Initialize(handshake, success(id, &answer)))
    }
}

/// Only what a header can carry: that is where clients put it.
fn user_agent(name: &str, version: &str) -> String {
    let (own, machine) = (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let text = format!("{name}/{own} (Linux; {machine}) lastbyte ({name}; {version})");
    text.replace(|character| !matches!(character, ' '..='~'), "_")
}

impl Handshake {
    pub(super) fn require_experimental(&self, what: &str) -> Result<(), Fault> {
        if self.experimental {
            return Ok(());
        }
        Err(Fault::invalid_request(format!("{what} requires experimentalApi capability")))
    }

    /// Whether the client wants these notifications.
    pub(super) fn wants(&self, notification: &str) -> bool {
        !self.opted_out.contains(notification)
    }
}
