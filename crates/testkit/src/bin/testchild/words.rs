//! The arguments of one action.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;

use crate::bytes;

/// What is left of an action's arguments.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a>(&'a [OsString]);

impl<'a> Words<'a> {
    /// An action's name, and its arguments.
    pub(crate) fn of(action: &'a [OsString]) -> io::Result<(&'a str, Self)> {
        let Some((name, arguments)) = action.split_first() else {
            return Err(io::Error::other("an action is missing before or after a `then`"));
        };
        let name = name.to_str().ok_or_else(|| io::Error::other("there is no such action"))?;
        Ok((name, Self(arguments)))
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The rest of the words, which must be empty.
    pub(crate) fn done(self) -> io::Result<()> {
        match self.0.first() {
            None => Ok(()),
            Some(word) => Err(io::Error::other(format!("{} is too much", word.display()))),
        }
    }

    pub(crate) fn word(&mut self, what: &str) -> io::Result<&'a OsStr> {
        let Some((word, rest)) = self.0.split_first() else {
            return Err(io::Error::other(format!("{what} is missing")));
        };
        self.0 = rest;
        Ok(word)
    }

    /// The next word with its escapes resolved.
    pub(crate) fn text(&mut self) -> io::Result<Vec<u8>> {
        bytes::unescape(self.word("TEXT")?.as_bytes())
    }

    pub(crate) fn number<Number: FromStr>(&mut self, what: &str) -> io::Result<Number> {
        let word = self.word(what)?;
        word.to_str()
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| io::Error::other(format!("{what} is a number, not {}", word.display())))
    }

    /// The actions between an action's name and its `end`.
    pub(crate) fn actions(self) -> io::Result<&'a [OsString]> {
        match self.0.split_last() {
            Some((end, actions)) if end == "end" => Ok(actions),
            _ => Err(io::Error::other("its `end` is missing")),
        }
    }
}
