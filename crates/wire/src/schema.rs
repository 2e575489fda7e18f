//! The JSON schema of every request and answer, in one document.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// All of it, under `$defs`.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    macro_rules! add {
        ($($type:ident)*) => { $(generator.subschema_for::<crate::$type>();)* };
    }
    add! {
        StartRequest StartAnswer WaitAnswer ListQuery ListAnswer OutputQuery WriteQuery
        WriteAnswer SignalRequest SignalAnswer StopRequest StopProof Survivor ResizeRequest
        ForgetQuery EventsQuery Event FollowQuery FollowOutput FollowDropped SearchQuery
        SearchAnswer TimesQuery TimesAnswer AttachQuery AttachRequest AttachNotice UpgradeRequest UpgradeAnswer
        StopManyRequest SignalManyRequest ForgetManyRequest ManyAnswer WaitManyRequest WaitManyAnswer
        Root Health ErrorBody
    }
    with_ends(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "lastbyte",
        "$defs": generator.take_definitions(true),
    }))
}

/// Adds the bounds of each integer of 64 bits, which schemars leaves to the name of its format.
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
    fn the_committed_schema_is_the_one_of_the_types() {
        let committed: Value = serde_json::from_str(include_str!("../schema.json")).unwrap();
        assert!(committed == schema(), "run `cargo xtask schema` and look at what it changes");
    }

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
