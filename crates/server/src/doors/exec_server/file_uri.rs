//! Paths as this protocol writes them: `file:///usr/bin`.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};

/// An absolute path of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct FileUri(pub(super) PathBuf);

impl TryFrom<String> for FileUri {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse(&text).map(Self).ok_or_else(|| format!("not the file URI of a local path: {text:?}"))
    }
}

fn parse(text: &str) -> Option<PathBuf> {
    let (scheme, rest) = text.split_once("://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let is_plain = path.starts_with('/') && !path.contains(['?', '#', '\0']);
    if !scheme.eq_ignore_ascii_case("file") || !is_plain {
        return None;
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        (bytes, rest) = match (byte, after) {
            (b'%', [high, low, after @ ..]) => {
                bytes.push((digit(*high)? << 4 | digit(*low)?) as u8);
                (bytes, after)
            }
            (b'%', _) => return None,
            (byte, after) => {
                bytes.push(byte);
                (bytes, after)
            }
        };
    }
    (!bytes.contains(&0)).then(|| OsString::from_vec(bytes).into())
}

fn digit(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

impl Serialize for FileUri {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&to_text(&self.0))
    }
}

fn to_text(path: &Path) -> String {
    let mut text = String::from("file://");
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=:@".contains(&byte) {
            text.push(char::from(byte));
        } else {
            _ = write!(text, "%{byte:02X}"); // a string takes everything
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_comes_back_as_it_was() {
        let all: Vec<u8> = [b"/".to_vec(), (1..=255).collect()].concat();
        for path in [PathBuf::from("/usr/a b%c\u{e9}#?x"), OsString::from_vec(all).into()] {
            assert_eq!(parse(&to_text(&path)), Some(path));
        }
    }

    #[test]
    fn what_is_no_local_path_is_refused() {
        let path = |text: &str| parse(text).map(|path| path.to_str().unwrap().to_owned());
        assert_eq!(path("file:///usr/").as_deref(), Some("/usr/"));
        assert_eq!(path("FILE://localhost/usr").as_deref(), Some("/usr"));
        for text in [
            "/usr",
            "usr",
            "",
            "file:",
            "file://",
            "file:usr",
            "http://localhost/usr",
            "file://elsewhere/usr",
            "file://localhostess/usr",
            "file:///usr?x=1",
            "file:///usr#x",
            "file:///a%00b",
            "file:///a%0",
            "file:///a%zz",
        ] {
            assert_eq!(path(text), None, "{text}");
        }
    }
}
