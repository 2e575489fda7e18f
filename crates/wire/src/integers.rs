//! The ends of integers, which a schema otherwise leaves to the name of a format.

use serde_json::{Value, json};

/// Says of each integer of 64 bits where it ends, as is said of the shorter ones.
pub(crate) fn with_ends(mut document: Value) -> Value {
    add_ends(&mut document);
    document
}

fn add_ends(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let ends = match members.get("format").and_then(Value::as_str) {
                Some("uint64") => Some((json!(u64::MIN), json!(u64::MAX))),
                Some("int64") => Some((json!(i64::MIN), json!(i64::MAX))),
                _ => None,
            };
            if let Some((minimum, maximum)) = ends {
                members.entry("minimum").or_insert(minimum);
                members.entry("maximum").or_insert(maximum);
            }
            members.values_mut().for_each(add_ends);
        }
        Value::Array(values) => values.iter_mut().for_each(add_ends),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_said_where_none_is() {
        let document =
            json!([{ "format": "uint64", "minimum": 1 }, { "a": { "format": "int64" } }]);
        let want = json!([
            { "format": "uint64", "minimum": 1, "maximum": u64::MAX },
            { "a": { "format": "int64", "minimum": i64::MIN, "maximum": i64::MAX } },
        ]);
        assert_eq!(with_ends(document), want);
    }
}
