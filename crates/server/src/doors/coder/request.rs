//! What a body asks for, read as leniently as Go does: names in any case, the last of two counts,
//! `null` changes nothing, what is not known is passed over.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Error, from_str};

use super::json_in::read_members;

/// The body of a start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct StartBody {
    pub(super) command: String,
    pub(super) workdir: String,
    pub(super) env: BTreeMap<String, String>,
    pub(super) background: bool,
    /// Empty means not given, as for the next one.
    pub(super) client_token: String,
    pub(super) idempotency_key: String,
}

impl StartBody {
    pub(super) fn decode(body: &[u8]) -> Result<Self, Error> {
        let mut request = Self::default();
        read_members(body, |name, value| match folded(name).as_str() {
            "command" => set(&mut request.command, value),
            "workdir" => set(&mut request.workdir, value),
            "client_token" => set(&mut request.client_token, value),
            "idempotency_key" => set(&mut request.idempotency_key, value),
            "background" => set(&mut request.background, value),
            "env" => request.add_env(value),
            _ => Ok(()),
        })?;
        Ok(request)
    }

    fn add_env(&mut self, value: &RawValue) -> Result<(), Error> {
        match from_str::<Option<BTreeMap<String, Option<String>>>>(value.get())? {
            None => self.env.clear(), // where `null` leaves anything else alone
            Some(more) => {
                let more = more.into_iter().map(|(name, value)| (name, value.unwrap_or_default()));
                self.env.extend(more);
            }
        }
        Ok(())
    }
}

/// The name of the signal that a body asks for.
pub(super) fn decode_signal(body: &[u8]) -> Result<String, Error> {
    let mut signal = String::new();
    read_members(body, |name, value| match folded(name).as_str() {
        "signal" => set(&mut signal, value),
        _ => Ok(()),
    })?;
    Ok(signal)
}

/// `null` changes nothing.
fn set<T: DeserializeOwned>(member: &mut T, value: &RawValue) -> Result<(), Error> {
    if let Some(value) = from_str(value.get())? {
        *member = value;
    }
    Ok(())
}

/// Names that differ in case alone become one. These two are the only characters outside ASCII
/// that fold to a letter in it.
fn folded(name: &str) -> String {
    let fold = |character: char| match character {
        '\u{212a}' => 'k',
        '\u{17f}' => 's',
        other => other.to_ascii_lowercase(),
    };
    name.chars().map(fold).collect()
}

#[cfg(test)]
mod tests;
