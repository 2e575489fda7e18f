//! What a body asks for, read as leniently as Go does: names in any case, the last of two counts,
//! `null` changes nothing, what is not known is passed over.

use std::collections::BTreeMap;

use super::json_in::{Kind, Malformed, Value, first_value};

/// The body of a start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct StartRequest {
    pub(super) command: String,
    pub(super) workdir: String,
    pub(super) env: BTreeMap<String, String>,
    pub(super) background: bool,
    /// A retry with the same token and request is the same process; empty is none.
    pub(super) client_token: String,
}

/// The body of a signal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SignalRequest {
    pub(super) signal: String,
}

/// Why a body is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Undecodable {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("json: cannot unmarshal {found} into {place}")]
    WrongType { found: &'static str, place: &'static str },
}

const COMMAND: &str = "Go struct field StartProcessRequest.command of type string";
const WORKDIR: &str = "Go struct field StartProcessRequest.workdir of type string";
const ENV: &str = "Go struct field StartProcessRequest.env of type map[string]string";
const ENV_VALUE: &str = "Go struct field StartProcessRequest.env of type string";
const BACKGROUND: &str = "Go struct field StartProcessRequest.background of type bool";
const TOKEN: &str = "Go struct field StartProcessRequest.client_token of type string";
const START: &str = "Go value of type workspacesdk.StartProcessRequest";
const SIGNAL_FIELD: &str = "Go struct field SignalProcessRequest.signal of type string";
const SIGNAL: &str = "Go value of type workspacesdk.SignalProcessRequest";

impl StartRequest {
    pub(super) fn decode(body: &[u8]) -> Result<Self, Undecodable> {
        let (mut request, mut faults) = (Self::default(), FirstFault::default());
        each_member(first_value(body)?, START, |name, value| {
            let taken = match name {
                "command" => set_text(&mut request.command, value, COMMAND),
                "workdir" => set_text(&mut request.workdir, value, WORKDIR),
                "env" => set_env(&mut request.env, value),
                "background" => set_bool(&mut request.background, value, BACKGROUND),
                "client_token" => set_text(&mut request.client_token, value, TOKEN),
                _ => Ok(()),
            };
            faults.note(taken);
        })?;
        faults.none_or().map(|()| request)
    }
}

impl SignalRequest {
    pub(super) fn decode(body: &[u8]) -> Result<Self, Undecodable> {
        let (mut request, mut faults) = (Self::default(), FirstFault::default());
        each_member(first_value(body)?, SIGNAL, |name, value| {
            if name == "signal" {
                faults.note(set_text(&mut request.signal, value, SIGNAL_FIELD));
            }
        })?;
        faults.none_or().map(|()| request)
    }
}

/// Decoding goes on behind a fault; the first one is told.
#[derive(Default)]
struct FirstFault(Option<Undecodable>);

impl FirstFault {
    fn note(&mut self, taken: Result<(), Undecodable>) {
        self.0 = self.0.take().or(taken.err());
    }

    fn none_or(self) -> Result<(), Undecodable> {
        self.0.map_or(Ok(()), Err)
    }
}

fn each_member(
    value: Value<'_>,
    place: &'static str,
    mut take: impl FnMut(&str, Value<'_>),
) -> Result<(), Undecodable> {
    match value.kind() {
        Kind::Null => {}
        Kind::Object(members) => members.for_each(|(name, value)| take(&folded(&name), value)),
        other => return wrong(&other, place),
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

fn set_text(field: &mut String, value: Value<'_>, place: &'static str) -> Result<(), Undecodable> {
    match value.kind() {
        Kind::Null => {}
        Kind::String(text) => *field = text.decode(),
        other => return wrong(&other, place),
    }
    Ok(())
}

fn set_bool(field: &mut bool, value: Value<'_>, place: &'static str) -> Result<(), Undecodable> {
    match value.kind() {
        Kind::Null => {}
        Kind::Bool(given) => *field = given,
        other => return wrong(&other, place),
    }
    Ok(())
}

/// Objects are merged, name by name. `null` empties a map where it leaves anything else alone.
fn set_env(env: &mut BTreeMap<String, String>, value: Value<'_>) -> Result<(), Undecodable> {
    let mut faults = FirstFault::default();
    match value.kind() {
        Kind::Null => env.clear(),
        Kind::Object(members) => members.for_each(|(name, value)| {
            let mut text = String::new();
            faults.note(set_text(&mut text, value, ENV_VALUE));
            env.insert(name, text);
        }),
        other => return wrong(&other, ENV),
    }
    faults.none_or()
}

fn wrong(found: &Kind<'_>, place: &'static str) -> Result<(), Undecodable> {
    Err(Undecodable::WrongType { found: found.name(), place })
}

#[cfg(test)]
mod tests;
