//! What a hook prints, as an environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use lastbyte_engine::Environment;

/// What is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum BadEnvironment {
    #[error("nothing")]
    Empty,
    #[error("an invalid JSON object of strings: {0}")]
    Json(serde_json::Error),
    #[error("{0:?}, which is not NAME=VALUE")]
    Pair(String),
    #[error("the variable {0:?}, which has an invalid name or a NUL in its value")]
    Name(String),
}

/// A JSON object, or pairs with a NUL behind each, as `env -0` prints them.
pub(super) fn parse(printed: &[u8]) -> Result<Environment, BadEnvironment> {
    match printed.trim_ascii_start().first() {
        None => Err(BadEnvironment::Empty),
        Some(b'{') => object(printed),
        Some(_) => pairs(printed),
    }
}

fn object(printed: &[u8]) -> Result<Environment, BadEnvironment> {
    let object: BTreeMap<String, String> =
        serde_json::from_slice(printed).map_err(BadEnvironment::Json)?;
    let check = |(name, value): (String, String)| {
        let bad = name.is_empty() || name.contains(['=', '\0']) || value.contains('\0');
        if bad { Err(BadEnvironment::Name(name)) } else { Ok((name.into(), value.into())) }
    };
    object.into_iter().map(check).collect()
}

fn pairs(printed: &[u8]) -> Result<Environment, BadEnvironment> {
    let printed = printed.strip_suffix(b"\0").unwrap_or(printed);
    let pair = |pair: &[u8]| match pair.iter().position(|byte| *byte == b'=') {
        None | Some(0) => Err(BadEnvironment::Pair(String::from_utf8_lossy(pair).into_owned())),
        Some(at) => {
            let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            Ok((text(&pair[..at]), text(&pair[at + 1..])))
        }
    };
    printed.split(|byte| *byte == b'\0').map(pair).collect()
}

#[cfg(test)]
mod tests {
    use lastbyte_testkit::{Corpus, fuzz};

    use super::*;

    fn check(printed: &[u8], want: &[(&str, &str)]) {
        let want = want.iter().map(|(name, value)| (name.into(), value.into())).collect();
        assert_eq!(parse(printed).unwrap(), want);
    }

    #[test]
    fn an_object_and_pairs_say_the_same() {
        let want = [("A", "1"), ("B", "two\nlines=2"), ("E", "")];
        check(b" {\"A\":\"1\",\"B\":\"two\\nlines=2\",\"E\":\"\"}\n", &want);
        check(b"A=1\0B=two\nlines=2\0E=\0", &want);
        check(b"A=1\0B=two\nlines=2\0E=", &want);
    }

    /// No name or value that a command cannot have gets through.
    #[test]
    fn nothing_that_is_printed_does_harm() {
        let words = ["=", "\0", "{\"", "\":\"", "\"}", "\\u0000", "A=1\0"];
        let made = vec![b"A=1\0B=2\0".to_vec(), br#"{"A":"1","B":"2"}"#.to_vec()];
        fuzz(Corpus { name: "env-hook", made, words: &words }, |printed| {
            let is_sound = |(name, value): (&std::ffi::OsStr, &std::ffi::OsStr)| {
                let (name, value) = (name.as_encoded_bytes(), value.as_encoded_bytes());
                let is_name = !name.is_empty() && !name.contains(&b'=') && !name.contains(&0);
                is_name && !value.contains(&0)
            };
            parse(printed)
                .inspect(|all| assert!(all.iter().all(is_sound), "{all:?}"))
                .map(|all| all.iter().count())
                .map_err(|error| std::mem::discriminant(&error))
        });
    }

    #[test]
    fn what_is_neither_is_refused() {
        for printed in
            [b"".as_slice(), b" \n", b"oops", b"=x", b"A=1\0\0B=2", b"{\"A\":1}", b"{oops"]
        {
            assert!(parse(printed).is_err(), "{printed:?}");
        }
        for printed in ["{\"\":\"x\"}", "{\"A=B\":\"x\"}", "{\"A\":\"\\u0000\"}"] {
            assert!(parse(printed.as_bytes()).is_err(), "{printed}");
        }
    }
}
