//! Keys as the engine has them: those of a session's token are the session's own.
//!
//! A client sees the key that it sent. So the stored form can be turned back, whatever is in a key:
//! with the length of its name, no two sessions share a key, and a key of another client that looks
//! like one of a session is marked as well.

use lastbyte_engine::{Key, Session};

const OF_SESSION: &str = "session:";
const OF_NOBODY: &str = "unbound:";

/// As the engine stores it, for a client that is bound to this session or to none.
pub(crate) fn store(key: &Key, within: Option<&Session>) -> Key {
    let text = &key.0;
    let looks_stored = text.starts_with(OF_SESSION) || text.starts_with(OF_NOBODY);
    Key(match within {
        Some(Session(name)) => format!("{OF_SESSION}{}:{name}:{text}", name.len()),
        None if looks_stored => format!("{OF_NOBODY}{text}"),
        None => text.clone(),
    })
}

/// As its client sent it.
pub(crate) fn sent(stored: &Key) -> &str {
    let text = stored.0.as_str();
    text.strip_prefix(OF_NOBODY).or_else(|| of_session(text)).unwrap_or(text)
}

fn of_session(text: &str) -> Option<&str> {
    let (length, rest) = text.strip_prefix(OF_SESSION)?.split_once(':')?;
    rest.get(length.parse().ok()?..)?.strip_prefix(':')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_key_of_each_session_is_stored_apart_and_shown_as_it_was_sent() {
        let sessions = ["", "a", "a:b", "1:a", "ü"].map(|name| Session(name.into()));
        let keys =
            ["", "k", "b:c", "session:1:a:k", "session:x", "unbound:k", "unbound:session:1:a:k"];
        let mut stored = BTreeSet::new();
        for within in sessions.iter().map(Some).chain([None]) {
            for key in keys.map(|key| Key(key.into())) {
                let as_stored = store(&key, within);
                assert_eq!(sent(&as_stored), key.0, "{as_stored:?}");
                assert!(stored.insert(as_stored.0), "{key:?} in {within:?} is stored already");
            }
        }
    }
}
