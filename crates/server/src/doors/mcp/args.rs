//! The arguments of a call: by the names that models use for them, in the forms that they send.

use lastbyte_wire::Error;
use serde_json::{Map, Value};

use crate::from_wire::invalid;

/// An argument of a tool: its name, and other names that stand for it.
pub(super) type Argument = (&'static str, &'static [&'static str]);

/// The arguments that were given, each by its main name.
#[derive(Debug)]
pub(super) struct Args {
    given: Map<String, Value>,
}

impl Args {
    /// Refuses an argument that the tool does not have, and names the nearest that it has.
    pub(super) fn new(known: &[Argument], given: Map<String, Value>) -> Result<Self, Error> {
        let mut args = Map::new();
        for (name, value) in given {
            let is = |(main, others): &&Argument| *main == name || others.contains(&name.as_str());
            let Some((main, _)) = known.iter().find(is) else { return Err(unknown(known, &name)) };
            if value.is_null() {
                continue;
            }
            if args.insert((*main).to_owned(), value).is_some() {
                return Err(invalid(format!("`{main}` is given twice, by two of its names")));
            }
        }
        Ok(Self { given: args })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, Error> {
        let text = |value: &'_ Value| match value {
            Value::String(_) => Ok(()),
            _ => Err(wrong(name, "a string")),
        };
        let Some(value) = self.given.get(name) else { return Ok(None) };
        text(value)?;
        Ok(value.as_str())
    }

    pub(super) fn required_text(&self, name: &str) -> Result<&str, Error> {
        self.text(name)?.ok_or_else(|| missing(name))
    }

    /// A list of strings, or one.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<&str>, Error> {
        let expected = || wrong(name, "a list of strings");
        match self.given.get(name) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text]),
            Some(Value::Array(texts)) => {
                texts.iter().map(|text| text.as_str().ok_or_else(expected)).collect()
            }
            Some(_) => Err(expected()),
        }
    }

    /// A whole number, also in a string.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Error> {
        let number = |value: &Value| match value {
            Value::Number(number) => {
                let whole = number.as_f64().filter(|it| *it >= 0.0 && it.fract() == 0.0);
                number.as_u64().or(whole.map(|whole| whole as u64))
            }
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let value = self.given.get(name);
        value.map(|it| number(it).ok_or_else(|| wrong(name, "a whole number"))).transpose()
    }

    /// `true` or `false`, also in a string. `false` if it is not given.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Error> {
        match self.given.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(_) => Err(wrong(name, "true or false")),
        }
    }

    /// One of these words.
    pub(super) fn word(&self, name: &str, words: &[&'static str]) -> Result<Option<usize>, Error> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let place = words.iter().position(|word| *word == text);
        place.map(Some).ok_or_else(|| wrong(name, &format!("one of {}", words.join(", "))))
    }

    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.given.get(name)
    }

    /// What stands for a process: a string or a number.
    pub(super) fn process(&self, name: &str) -> Result<String, Error> {
        let value = self.given.get(name).ok_or_else(|| {
            missing(name).hint("list_processes has the ids of this session's processes")
        })?;
        as_id(value).ok_or_else(|| wrong(name, "the id or name of a process"))
    }

    /// Several of them: a list, or one.
    pub(super) fn processes(&self, name: &str) -> Result<Vec<String>, Error> {
        match self.given.get(name) {
            Some(Value::Array(ids)) if !ids.is_empty() => {
                let ids =
                    ids.iter().map(|id| as_id(id).ok_or_else(|| wrong(name, "a list of ids")));
                ids.collect()
            }
            _ => self.process(name).map(|id| vec![id]),
        }
    }
}

fn as_id(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

pub(super) fn missing(name: &str) -> Error {
    invalid(format!("`{name}` is missing"))
}

pub(super) fn wrong(name: &str, expected: &str) -> Error {
    invalid(format!("`{name}` must be {expected}"))
}

fn unknown(known: &[Argument], name: &str) -> Error {
    let all = known.iter().flat_map(|(main, others)| {
        std::iter::once((*main, *main)).chain(others.iter().map(|other| (*other, *main)))
    });
    let nearest = all.map(|(word, main)| (distance(word, name), main)).min();
    let names: Vec<_> = known.iter().map(|(main, _)| *main).collect();
    let valid = match names.as_slice() {
        [] => "it takes none".to_owned(),
        names => format!("it takes {}", names.join(", ")),
    };
    let error = invalid(format!("unknown argument `{name}`"));
    match nearest {
        Some((_, main)) => error.hint(format!("did you mean `{main}`? {valid}")),
        None => error.hint(valid),
    }
}

/// How many characters have to be added, removed or replaced.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (nth, a) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], nth + 1);
        for (at, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KNOWN: &[Argument] = &[("command", &["cmd"]), ("timeout", &["timeout_ms"]), ("tty", &[])];

    fn args(given: Value) -> Result<Args, Error> {
        let Value::Object(given) = given else { panic!("no object") };
        Args::new(KNOWN, given)
    }

    #[test]
    fn another_name_stands_for_an_argument() {
        let given = args(json!({ "cmd": "ls", "timeout_ms": 5 })).unwrap();
        assert_eq!(given.text("command"), Ok(Some("ls")));
        assert_eq!(given.number("timeout"), Ok(Some(5)));
        assert!(args(json!({ "cmd": "ls", "command": "ls" })).is_err());
    }

    #[test]
    fn an_unknown_argument_is_refused_with_the_nearest_one() {
        let refused = args(json!({ "comand": "ls" })).unwrap_err();
        assert_eq!(refused.message, "unknown argument `comand`");
        let hint = refused.hint.unwrap();
        assert_eq!(hint, "did you mean `command`? it takes command, timeout, tty");
    }

    #[test]
    fn a_number_may_be_in_a_string_and_null_is_nothing() {
        for five in [json!(5), json!("5"), json!(5.0), json!(" 5 ")] {
            assert_eq!(args(json!({ "timeout": five })).unwrap().number("timeout"), Ok(Some(5)));
        }
        for none in [json!("x"), json!(-1), json!(1.5), json!([]), json!("")] {
            let given = args(json!({ "timeout": none })).unwrap();
            assert!(given.number("timeout").is_err(), "{none}");
        }
        assert_eq!(args(json!({ "timeout": null })).unwrap().number("timeout"), Ok(None));
        assert_eq!(args(json!({ "tty": "true" })).unwrap().flag("tty"), Ok(true));
        assert!(args(json!({ "tty": 1 })).unwrap().flag("tty").is_err());
    }

    #[test]
    fn the_distance_of_two_words_counts_changes() {
        for (one, other, want) in [("", "", 0), ("a", "", 1), ("command", "comand", 1)] {
            assert_eq!(distance(one, other), want);
            assert_eq!(distance(other, one), want);
        }
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
