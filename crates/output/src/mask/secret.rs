//! A secret: a variable's name, and a value that is never shown.

use std::fmt;

use super::control::without_control;

/// A secret variable. Its `Debug` shows only the name.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    name: String,
    value: Vec<u8>,
}

/// Why something cannot be a secret. It names the variable, never the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error(
        "the name of a secret must be a letter or `_`, then letters, digits and `_`, at most {} in \
         all: {name:?}",
        Secret::LONGEST_NAME
    )]
    Name { name: String },
    #[error(
        "the secret {name} is shorter than {} characters: it cannot be masked, because such short text is \
         also found elsewhere",
        Secret::SHORTEST
    )]
    TooShort { name: String },
    #[error("the secret {name} is longer than {} bytes", Secret::LONGEST)]
    TooLong { name: String },
    #[error("the secret {name} contains a NUL byte")]
    Nul { name: String },
}

impl Secret {
    /// In characters, without terminal control.
    pub const SHORTEST: usize = 4;
    pub const LONGEST: usize = 32 << 10;
    pub const LONGEST_NAME: usize = 64;

    pub fn new(name: impl Into<String>, value: impl Into<Vec<u8>>) -> Result<Self, SecretError> {
        let (name, value) = (name.into(), value.into());
        let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
        let is_later = |byte: u8| is_first(byte) || byte.is_ascii_digit();
        let is_name = name.bytes().next().is_some_and(is_first) && name.bytes().all(is_later);
        if !is_name || name.len() > Self::LONGEST_NAME {
            return Err(SecretError::Name { name });
        }
        if value.contains(&0) {
            return Err(SecretError::Nul { name });
        }
        if value.len() > Self::LONGEST {
            return Err(SecretError::TooLong { name });
        }
        let shown = without_control(&value);
        if String::from_utf8_lossy(&shown).chars().count() < Self::SHORTEST {
            return Err(SecretError::TooShort { name });
        }
        Ok(Self { name, value })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn value(&self) -> &[u8] {
        &self.value
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Secret").field("name", &self.name).finish_non_exhaustive()
    }
}
