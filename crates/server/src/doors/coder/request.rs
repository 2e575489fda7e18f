//! What a body asks for, read as leniently as Go does: names in any case, the last of two counts,
//! `null` changes nothing, what is not known is passed over.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Error;

use super::json_in::{Text, first_value};

/// The body of a start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct StartRequest {
    pub(super) command: String,
    pub(super) workdir: String,
    pub(super) env: BTreeMap<String, String>,
    pub(super) background: bool,
    /// Empty means not given, as for the next one.
    pub(super) client_token: String,
    pub(super) idempotency_key: String,
}

/// The body of a signal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SignalRequest {
    pub(super) signal: String,
}

impl StartRequest {
    pub(super) fn decode(body: &[u8]) -> Result<Self, Error> {
        object(body)
    }
}

impl SignalRequest {
    pub(super) fn decode(body: &[u8]) -> Result<Self, Error> {
        object(body)
    }
}

/// The object that a body begins with. `null` is one without members.
fn object<T: FromMembers>(body: &[u8]) -> Result<T, Error> {
    let object = first_value::<Option<Object<T>>>(body)?;
    Ok(object.map(|Object(object)| object).unwrap_or_default())
}

/// What is read from an object, member by member in order.
trait FromMembers: Default {
    fn take<'de, M: MapAccess<'de>>(&mut self, name: &str, members: &mut M)
    -> Result<(), M::Error>;
}

impl FromMembers for StartRequest {
    fn take<'de, M: MapAccess<'de>>(
        &mut self,
        name: &str,
        members: &mut M,
    ) -> Result<(), M::Error> {
        match folded(name).as_str() {
            "command" => set_text(&mut self.command, members),
            "workdir" => set_text(&mut self.workdir, members),
            "client_token" => set_text(&mut self.client_token, members),
            "idempotency_key" => set_text(&mut self.idempotency_key, members),
            "background" => {
                self.background = members.next_value::<Option<bool>>()?.unwrap_or(self.background);
                Ok(())
            }
            "env" => {
                match members.next_value()? {
                    Some(Object(Env(more))) => self.env.extend(more),
                    None => self.env.clear(), // where `null` leaves anything else alone
                }
                Ok(())
            }
            _ => members.next_value::<IgnoredAny>().map(drop),
        }
    }
}

impl FromMembers for SignalRequest {
    fn take<'de, M: MapAccess<'de>>(
        &mut self,
        name: &str,
        members: &mut M,
    ) -> Result<(), M::Error> {
        match folded(name).as_str() {
            "signal" => set_text(&mut self.signal, members),
            _ => members.next_value::<IgnoredAny>().map(drop),
        }
    }
}

#[derive(Default)]
struct Env(BTreeMap<String, String>);

impl FromMembers for Env {
    fn take<'de, M: MapAccess<'de>>(
        &mut self,
        name: &str,
        members: &mut M,
    ) -> Result<(), M::Error> {
        let mut text = String::new();
        set_text(&mut text, members)?;
        self.0.insert(name.to_owned(), text);
        Ok(())
    }
}

fn set_text<'de, M: MapAccess<'de>>(field: &mut String, members: &mut M) -> Result<(), M::Error> {
    if let Some(Text(text)) = members.next_value()? {
        *field = text;
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

struct Object<T>(T);

impl<'de, T: FromMembers> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: FromMembers> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Object<T>, M::Error> {
        let mut object = T::default();
        while let Some(Text(name)) = members.next_key()? {
            object.take(&name, &mut members)?;
        }
        Ok(Object(object))
    }
}

#[cfg(test)]
mod tests;
