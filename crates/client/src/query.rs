//! Requests as parts of a URL.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::Serialize;
use serde_json::Value;

/// `?name=value&…` of the fields that are there; empty without any.
pub(crate) fn query(fields: &impl Serialize) -> String {
    // A value that is no object has no fields.
    let Ok(Value::Object(fields)) = serde_json::to_value(fields) else { return String::new() };
    let pairs = fields.iter().filter_map(|(name, value)| Some((name, text(value)?)));
    let pairs: Vec<String> =
        pairs.map(|(name, value)| format!("{name}={}", part(&value))).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

const ESCAPED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Text as one part of a path or a query, whatever is in it.
pub(crate) fn part(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, &ESCAPED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{ListQuery, OutputQuery, Phase, View};

    #[test]
    fn only_what_is_asked_for_is_in_the_query() {
        assert_eq!(query(&OutputQuery::default()), "");
        let asked =
            OutputQuery { view: Some(View::HeadTail), from: Some(-5), ..OutputQuery::default() };
        assert_eq!(query(&asked), "?from=-5&view=head_tail");
    }

    #[test]
    fn what_means_something_in_a_url_is_written_out() {
        let asked = ListQuery {
            phase: Some(Phase::Ended),
            label: Some("a=b&c d/ü?".into()),
            ..ListQuery::default()
        };
        assert_eq!(query(&asked), "?label=a%3Db%26c%20d%2F%C3%BC%3F&phase=ended");
        assert_eq!(part("../x").to_string(), "..%2Fx");
    }
}
