//! Values that are sent and never shown.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Secret variables: their names and values. Its `Debug` shows only the names, and so do its errors.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secrets(pub BTreeMap<String, String>);

impl Secrets {
    /// In characters.
    pub const SHORTEST: usize = 4;
    pub const NAME_PATTERN: &str = "^[A-Za-z_][A-Za-z0-9_]{0,63}$";

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

impl Serialize for Secrets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Secrets {
    /// Not derived: such an error shows what it found.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let not_object = || D::Error::custom("expected an object of strings");
        // Any value is one, so that this fails only for what is no JSON.
        let Value::Object(members) = Value::deserialize(deserializer).map_err(|_| not_object())?
        else {
            return Err(not_object());
        };
        let text = |(name, value)| match value {
            Value::String(value) => Ok((name, value)),
            _ => Err(D::Error::custom(format!("the secret {name:?} is not a string"))),
        };
        members.into_iter().map(text).collect::<Result<_, _>>().map(Self)
    }
}

impl JsonSchema for Secrets {
    fn schema_name() -> Cow<'static, str> {
        "Secrets".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "propertyNames": { "pattern": Self::NAME_PATTERN },
            "additionalProperties": { "type": "string", "minLength": Self::SHORTEST },
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_str, from_value, json, to_value};

    use crate::StartRequest;

    #[test]
    fn secrets_are_sent_as_they_are_and_not_shown() {
        let sent = json!({ "shell": "true", "secrets": { "TOKEN": "hunter2" } });
        let request: StartRequest = from_value(sent.clone()).unwrap();
        assert_eq!(to_value(&request).unwrap(), sent);
        let shown = format!("{request:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn no_error_shows_what_was_sent() {
        for secrets in [
            "\"hunter2\"",
            "[\"hunter2\"]",
            "{\"TOKEN\": [\"hunter2\"]}",
            "{\"TOKEN\": {\"hunter2\": 1}}",
            "{\"TOKEN\": \"hunter2",
            "{\"TOKEN\": \"hunter2\\q\"}",
            "{\"TOKEN\": hunter2}",
        ] {
            let request = format!("{{\"shell\": \"true\", \"secrets\": {secrets}}}");
            let error = from_str::<StartRequest>(&request).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        for (value, shown) in [(json!(12345678), "12345678"), (json!(true), "true")] {
            let request = json!({ "secrets": { "TOKEN": value } });
            let error = from_value::<StartRequest>(request).unwrap_err().to_string();
            assert_eq!(error, "the secret \"TOKEN\" is not a string", "{shown}");
        }
    }
}
