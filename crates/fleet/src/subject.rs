//! The names of the fleet on the broker. A credential is limited by what it may publish to:
//!
//! ```text
//! lb.v1.bid.NODE                             has it room for a command?
//! lb.v1.node.NODE.all.-.STREAM               everything
//! lb.v1.node.NODE.read.-.STREAM              what changes nothing
//! lb.v1.node.NODE.session.NAME.STREAM        the processes of one session
//! ```

use std::fmt::Write;

use lastbyte_server::listen::{May, Scope};

/// Asks a node what it would take.
pub(crate) fn bid(node: &str) -> String {
    format!("lb.v1.bid.{node}")
}

const NODE: &str = "lb.v1.node";

/// What a node listens to: every stream of connections to it.
pub(crate) fn all_streams(node: &str) -> String {
    format!("{NODE}.{node}.*.*.*")
}

/// The stream of one connection to a node, by a client with this scope. `None` if there is no
/// subject for it: a page that may see one process stays at the server that let it in.
pub(crate) fn stream(node: &str, scope: &Scope, stream: &str) -> Option<String> {
    let (kind, name) = match scope {
        Scope::All => ("all", "-".to_owned()),
        Scope::ReadOnly => ("read", "-".to_owned()),
        Scope::Session(session) => ("session", token(&session.0)),
        Scope::Process { may: May::Read | May::Write, .. } => return None,
    };
    Some(format!("{NODE}.{node}.{kind}.{name}.{stream}"))
}

/// The scope of a client that could publish to this subject.
pub(crate) fn scope(subject: &str) -> Option<Scope> {
    let mut tokens = subject.strip_prefix(NODE)?.split('.').skip(2);
    match (tokens.next()?, tokens.next()?) {
        ("all", "-") => Some(Scope::All),
        ("read", "-") => Some(Scope::ReadOnly),
        ("session", name) => Some(Scope::Session(lastbyte_engine::Session(untoken(name)?))),
        _ => None,
    }
}

/// A text as one token of a subject or a key: letters, digits, `_` and `-` stand for themselves.
pub(crate) fn token(text: &str) -> String {
    let mut token = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' {
            token.push(byte.into());
        } else {
            // A `String` takes everything.
            _ = write!(token, "={byte:02X}");
        }
    }
    token
}

fn untoken(token: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'=' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Whether this can be the name of a node: it is a token of subjects, and people type it.
pub fn is_node_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use lastbyte_engine::Session;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_subject_says_what_its_publisher_may_do() {
        for kind in [Scope::All, Scope::ReadOnly, Scope::Session(Session("a.b *>".into()))] {
            let subject = stream("n1", &kind, "s").unwrap();
            assert_eq!(subject.split('.').count(), 7, "{subject}");
            assert_eq!(scope(&subject), Some(kind));
        }
        for subject in ["lb.v1.node.n1.all.x.s", "lb.v1.node.n1.other.-.s", "lb.v1.node.n1", ""] {
            assert_eq!(scope(subject), None, "{subject}");
        }
    }

    proptest! {
        #[test]
        fn a_token_is_one_token_and_stands_for_its_text_alone(text in ".*") {
            let token = token(&text);
            prop_assert!(!token.contains(['.', '*', '>', ' ']) && token.is_ascii());
            prop_assert_eq!(untoken(&token), Some(text));
        }
    }
}
