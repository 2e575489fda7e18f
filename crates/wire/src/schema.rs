//! The JSON schema of every request and answer, in one document.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

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
        SearchAnswer LinesQuery LinesAnswer TimesQuery TimesAnswer AttachQuery AttachRequest AttachNotice UpgradeRequest UpgradeAnswer
        StopManyRequest SignalManyRequest ForgetManyRequest ManyAnswer WaitManyRequest WaitManyAnswer
        CreateLinkRequest CreateLinkAnswer TradeLinkRequest TradeLinkAnswer TicketAnswer
        Receipt Root Health ErrorBody
    }
    completed(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "lastbyte",
        "$defs": generator.take_definitions(true),
    }))
}

/// Adds what schemars leaves out, for programs that read the document: the bounds of each 64-bit integer,
/// which it leaves to the name of the format, and one list of the words that a string can be.
pub(crate) fn completed(mut document: Value) -> Value {
    complete(&mut document);
    document
}

fn complete(value: &mut Value) {
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
            join_words(members);
            members.values_mut().for_each(complete);
        }
        Value::Array(values) => values.iter_mut().for_each(complete),
        _ => {}
    }
}

/// Schemars describes each word as an alternative of its own. Client generators take it for a type of its own,
/// and fail on the other words.
fn join_words(members: &mut Map<String, Value>) {
    let Some(alternatives) = members.get("oneOf").and_then(Value::as_array) else { return };
    let Some(words) = alternatives.iter().map(words_of).collect::<Option<Vec<_>>>() else { return };
    let mut description =
        members.get("description").and_then(Value::as_str).unwrap_or("").to_owned();
    for (words, meaning) in &words {
        if let ([word], Some(meaning)) = (&words[..], meaning) {
            description += &format!("\n\n`{}`: {meaning}", word.as_str().unwrap_or_default());
        }
    }
    let words: Vec<Value> = words.into_iter().flat_map(|(words, _)| words).collect();
    members.remove("oneOf");
    members.insert("description".into(), description.trim_start().into());
    members.insert("type".into(), "string".into());
    members.insert("enum".into(), words.into());
}

/// The words of an alternative, and what it says of them; `None` if it is not about words.
fn words_of(alternative: &Value) -> Option<(Vec<Value>, Option<String>)> {
    let word = alternative.get("const").map(std::slice::from_ref);
    let words = word.or_else(|| alternative.get("enum")?.as_array().map(Vec::as_slice))?;
    let meaning = alternative.get("description").and_then(Value::as_str).map(str::to_owned);
    words.iter().all(Value::is_string).then(|| (words.to_vec(), meaning))
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
        assert_eq!(completed(document), want);
    }

    #[test]
    fn words_are_one_list_with_the_meaning_of_each() {
        let document = json!({
            "description": "How.",
            "oneOf": [
                { "type": "string", "enum": ["a", "b"] },
                { "type": "string", "const": "c", "description": "Slowly." },
            ],
        });
        let want = json!({
            "description": "How.\n\n`c`: Slowly.",
            "type": "string",
            "enum": ["a", "b", "c"],
        });
        assert_eq!(completed(document), want);
        let other = json!({ "oneOf": [{ "enum": ["a"] }, { "type": "object" }] });
        assert_eq!(completed(other.clone()), other);
    }
}
