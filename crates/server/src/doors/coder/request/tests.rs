use lastbyte_testkit::{Corpus, fuzz};
use proptest::prelude::*;

use super::*;

fn start(body: &str) -> StartBody {
    StartBody::decode(body.as_bytes()).unwrap_or_else(|error| panic!("{body}: {error}"))
}

fn check_command(body: &str, want: &str) {
    assert_eq!(start(body).command, want, "{body}");
}

fn check_fault(body: &str, member: &str) {
    let fault = StartBody::decode(body.as_bytes()).expect_err(body);
    assert!(fault.to_string().contains(member), "{body}: {fault}");
}

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

/// What is taken says the same when it is written again, and JSON that a stricter parser takes is taken.
#[test]
fn no_body_does_harm() {
    let words = [
        "\"command\":",
        "\"env\":{",
        "\"background\":true",
        "\\ud800",
        "\\udc00",
        "\\\"",
        "null",
        "[",
        "{",
        "}",
        ",",
        "1e9",
        "\"signal\":\"kill\"",
        "\u{212a}",
        "\u{17f}",
    ];
    fuzz(Corpus { name: "coder", words: &words, ..Corpus::default() }, |bytes| {
        let (signal, body) = (decode_signal(bytes), StartBody::decode(bytes));
        if let Ok(body) = &body {
            let again = serde_json::json!({
                "command": body.command, "workdir": body.workdir, "env": body.env,
                "background": body.background, "client_token": body.client_token,
                "idempotency_key": body.idempotency_key,
            });
            assert_eq!(StartBody::decode(again.to_string().as_bytes()).unwrap(), *body);
        }
        let strict = serde_json::from_slice::<BTreeMap<String, serde_json::Value>>(bytes);
        if strict.is_ok_and(|members| members.keys().all(|name| folded(name) != "signal")) {
            assert_eq!(signal.as_ref().unwrap(), "");
        }
        let kind = |body: StartBody| (body.command.len().min(9), body.env.len(), body.background);
        let error = |error: Error| error.to_string().chars().take(12).collect::<String>();
        (signal.is_ok(), body.map(kind).map_err(error))
    });
}

#[test]
fn every_field_is_taken() {
    let body = r#"{"command":"c","workdir":"/w","env":{"A":"1"},"background":true,
        "client_token":"t","idempotency_key":"k"}"#;
    let want = StartBody {
        command: "c".into(),
        workdir: "/w".into(),
        env: env(&[("A", "1")]),
        background: true,
        client_token: "t".into(),
        idempotency_key: "k".into(),
    };
    assert_eq!(start(body), want);
}

#[test]
fn names_match_in_any_case() {
    check_command(r#"{"COMMAND":"x"}"#, "x");
    check_command(r#"{"\u0063ommand":"x"}"#, "x");
    assert_eq!(start("{\"wor\u{212a}dir\":\"/\"}").workdir, "/");
    assert_eq!(
        start("{\"bac\u{212a}GROUND\":true,\"Client_To\u{212a}en\":\"t\"}").client_token,
        "t"
    );
    assert_eq!(start("{\"Idempotency_\u{212a}EY\":\"k\"}").idempotency_key, "k");
    let signal = decode_signal("{\"\u{17f}IGNAL\":\"kill\"} trailing".as_bytes());
    assert_eq!(signal.unwrap(), "kill");
}

#[test]
fn the_last_of_two_counts_whatever_its_case() {
    check_command(r#"{"command":"a","command":"b"}"#, "b");
    check_command(r#"{"command":"a","COMMAND":"b"}"#, "b");
    check_command(r#"{"COMMAND":"b","command":"a"}"#, "a");
}

#[test]
fn null_changes_nothing_but_empties_a_map() {
    check_command(r#"{"command":"x","command":null}"#, "x");
    check_command("null", "");
    check_command(r#"{"command":null}"#, "");
    assert!(start(r#"{"background":true,"background":null}"#).background);
    assert_eq!(start(r#"{"env":{"A":null}}"#).env, env(&[("A", "")]));
    assert_eq!(start(r#"{"env":{"A":"1"},"env":null,"env":{"B":"2"}}"#).env, env(&[("B", "2")]));
}

#[test]
fn two_environments_are_merged() {
    let merged = start(r#"{"env":{"A":"1","B":"1"},"ENV":{"B":"2","C":"3","C":"4"}}"#).env;
    assert_eq!(merged, env(&[("A", "1"), ("B", "2"), ("C", "4")]));
}

#[test]
fn what_is_not_known_and_what_follows_is_passed_over() {
    check_command(r#"{"timeout":1e999999,"x":{"y":[1,2,{}]},"command":"x"} xyz"#, "x");
    check_command(r#"{"command":"a"}{"command":"b"}"#, "a");
    check_command(r#"{"command":"a"}}"#, "a");
}

#[test]
fn a_wrong_type_is_refused() {
    check_fault(r#"{"command":5,"background":"x"}"#, "integer `5`, expected a string");
    check_fault(r#"{"env":[]}"#, "sequence, expected a map");
    check_fault(r#"{"env":{"A":true,"B":[]}}"#, "boolean `true`, expected a string");
    check_fault(r#"{"background":1}"#, "integer `1`, expected a boolean");
    check_fault(r#"{"workdir":{}}"#, "map, expected a string");
    check_fault(r#"{"idempotency_key":7}"#, "integer `7`, expected a string");
    check_fault(r#"{"command":1e999999}"#, "out of range");
    check_fault("[]", "sequence, expected an object");
    check_fault("01", "invalid number"); // a 0 for Go, which it refuses too
    assert!(decode_signal(br#"{"signal":9}"#).is_err());
}

#[test]
fn a_syntax_error_anywhere_beats_a_wrong_type() {
    check_fault(r#"{"command":5,"x":}"#, "expected value");
    check_fault("", "EOF");
    check_fault(r#"{"command":5"#, "EOF");
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        _ = StartBody::decode(&body);
        _ = decode_signal(&body);
    }

    /// Bytes that are nearly JSON, cut and changed anywhere.
    #[test]
    fn no_broken_json_makes_it_panic(value in json(), cut in 0..300_usize, (at, byte) in (0..300_usize, any::<u8>())) {
        let body = serde_json::json!({ "command": value, "env": { "A": value }, "x": value });
        let mut body = serde_json::to_vec(&body).unwrap();
        _ = StartBody::decode(&body[..cut.min(body.len())]);
        if let Some(endpoint) = body.get_mut(at) {
            *endpoint = byte;
        }
        _ = StartBody::decode(&body);
    }

    #[test]
    fn what_is_json_for_others_is_taken_and_reads_the_same(command in any::<String>(), env in any::<BTreeMap<String, String>>(), other in json()) {
        let body = serde_json::json!({ "command": command, "env": env, "other": other });
        let request = StartBody::decode(body.to_string().as_bytes()).unwrap();
        prop_assert_eq!((request.command, request.env), (command, env));
    }
}
