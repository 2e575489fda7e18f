//! The chat that a request names in its headers, and its ancestors.
//!
//! A chat is a session. A request without a valid chat sees everything: that is the agent's rule, and
//! no protection against hostile clients.

use axum::http::{HeaderMap, HeaderValue};
use lastbyte_engine::{Process, Session};

use super::json_in::repair;
use crate::App;
use crate::listen::Scope;

const CHAT: &str = "coder-chat-id";
const ANCESTORS: &str = "coder-ancestor-chat-ids";
const NIL: &str = "00000000-0000-0000-0000-000000000000";

/// The chats of a request, by their ids in lower case with dashes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Chat {
    pub(super) own: Option<String>,
    /// The nearest first; they give no access.
    pub(super) ancestors: Vec<String>,
}

impl Chat {
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let own = headers.get(CHAT).and_then(|value| chat_id(value.as_bytes()));
        Self { own, ancestors: headers.get(ANCESTORS).map(ancestors).unwrap_or_default() }
    }

    /// The session of a token is the chat of all its requests, whatever their headers say.
    pub(super) fn new(headers: &HeaderMap, scope: &Scope) -> Self {
        match scope {
            Scope::All | Scope::ReadOnly => Self::from_headers(headers),
            Scope::Session(Session(own)) => Self { own: Some(own.clone()), ancestors: Vec::new() },
            // Every request of it is refused.
            Scope::Process { .. } => Self { own: None, ancestors: Vec::new() },
        }
    }

    pub(super) fn session(&self) -> Option<Session> {
        self.own.clone().map(Session)
    }

    /// The process with this id, if this chat may see it.
    pub(super) fn find(&self, app: &App, id: &[u8]) -> Option<Process> {
        let process = std::str::from_utf8(id).ok().and_then(|id| app.process(id));
        process.filter(|process| self.reaches(process))
    }

    /// Whether it may see a process and signal it.
    pub(super) fn reaches(&self, process: &Process) -> bool {
        match (&self.own, &process.spec().session) {
            (Some(own), Some(Session(owner))) => own == owner,
            (None, _) | (_, None) => true,
        }
    }

    /// Its own id and those of its ancestors.
    pub(super) fn line(&self) -> Vec<Session> {
        self.own.iter().chain(&self.ancestors).cloned().map(Session).collect()
    }
}

/// Strings that are not UUIDs are skipped; anything but a list of strings counts as empty.
fn ancestors(header: &HeaderValue) -> Vec<String> {
    let texts = serde_json::from_str::<Vec<Option<String>>>(&repair(header.as_bytes()));
    texts.iter().flatten().flatten().filter_map(|text| chat_id(text.as_bytes())).collect()
}

/// The canonical form of a UUID in any accepted spelling. The nil UUID is not a chat.
fn chat_id(text: &[u8]) -> Option<String> {
    let dashed = match text.len() {
        32 => [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join(&b'-'),
        36 => text.to_vec(),
        38 => text[1..37].to_vec(), // whatever stands around it
        45 if text[..9].eq_ignore_ascii_case(b"urn:uuid:") => text[9..].to_vec(),
        _ => return None,
    };
    let fits = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    let is_uuid = dashed.iter().enumerate().all(fits);
    let id = String::from_utf8(dashed.to_ascii_lowercase()).ok()?;
    (is_uuid && id != NIL).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0a1b2c3d-0000-4000-8000-00000000000a";
    const B: &str = "0a1b2c3d-0000-4000-8000-00000000000b";

    fn chat(headers: &[(&'static str, &str)]) -> Chat {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        Chat::from_headers(&map)
    }

    fn check_own(header: &str, want: Option<&str>) {
        assert_eq!(chat(&[(CHAT, header)]).own.as_deref(), want, "{header:?}");
    }

    fn check_ancestors(header: &str, want: &[&str]) {
        assert_eq!(chat(&[(ANCESTORS, header)]).ancestors, want, "{header:?}");
    }

    #[test]
    fn every_spelling_of_a_chat_is_one_chat() {
        let spellings = [
            A.to_owned(),
            A.to_uppercase(),
            A.replace('-', ""),
            format!("{{{A}}}"),
            format!("x{A}y"),
            format!("urn:uuid:{A}"),
            format!("URN:UUID:{A}"),
        ];
        spellings.iter().for_each(|spelling| check_own(spelling, Some(A)));
    }

    #[test]
    fn what_is_no_chat_is_none() {
        for header in ["", "not-a-uuid", NIL, &A[1..], &A.replace('a', "g"), &A.replace('-', "x")] {
            check_own(header, None);
        }
        check_own(&format!("url:uuid:{A}"), None);
        assert_eq!(chat(&[]), Chat::default());
    }

    #[test]
    fn the_first_header_counts() {
        assert_eq!(chat(&[(CHAT, B), (CHAT, A)]).own.as_deref(), Some(B));
        assert_eq!(chat(&[(CHAT, "none"), (CHAT, A)]).own, None);
    }

    #[test]
    fn ancestors_are_an_array_of_strings() {
        check_ancestors(&format!("[\"{A}\",\"{B}\"]"), &[A, B]);
        check_ancestors(&format!("[\"{}\",\"zzz\",\"{NIL}\",null]", A.to_uppercase()), &[A]);
        for header in ["null", "", "{nope", "[]", "{}", "\"x\""] {
            check_ancestors(header, &[]);
        }
        check_ancestors(&format!("[\"{A}\",5]"), &[]);
        check_ancestors(&format!("[\"{A}\"] x"), &[]);
        check_ancestors(&format!("[\"{A}\",\"\\ud800\"]"), &[A]);
        check_ancestors(&format!("[\"{A}\",\"\t\"]"), &[]);
    }
}
