//! An object inside of a request.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// An object or null. A derived type takes a list, too, field by field, whatever the fields are
/// called: `[null, 9]` would be a way to stop.
pub(crate) fn object_or_null<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(ObjectOrNull(PhantomData))
}

struct ObjectOrNull<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectOrNull<T> {
    type Value = Option<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Option<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use crate::{StartRequest, StopPolicy, StopRequest};

    #[test]
    fn an_object_is_taken_a_list_is_not() {
        let policy = StopPolicy { signal: Some("INT".into()), grace_ms: None };
        let asked = from_value::<StopRequest>(json!({ "stop": { "signal": "INT" } }));
        assert_eq!(asked.unwrap().stop, Some(policy));
        for nothing in [json!({}), json!({ "stop": null })] {
            assert_eq!(from_value::<StopRequest>(nothing).unwrap().stop, None);
        }
        for list in [
            json!({ "stop": ["INT", 5] }),
            json!({ "stop": [] }),
            json!({ "tty": [24, 80] }),
            json!({ "wait": [true, null, null, null, null, null, null] }),
            json!({ "sandbox": ["read_only", true] }),
        ] {
            let refused = from_value::<StartRequest>(list.clone()).unwrap_err().to_string();
            assert!(refused.contains("expected an object"), "{list}: {refused}");
        }
    }
}
