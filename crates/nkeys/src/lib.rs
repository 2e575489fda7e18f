//! In place of the crate `nkeys`, by `[patch.crates-io]`. async-nats sends a signature only with its feature `nkeys`,
//! and that crate brings thirty packages. `lastbyte-fleet` signs by itself, so these types are there and never used.

use std::error;
use std::fmt::{self, Display};

/// There is none.
#[derive(Debug, Clone, Copy)]
pub enum KeyPair {}

#[derive(Debug, Clone, Copy)]
pub struct Error;

impl Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("keys are read by lastbyte-fleet alone")
    }
}

impl error::Error for Error {}

impl KeyPair {
    pub fn from_seed(_seed: &str) -> Result<Self, Error> {
        Err(Error)
    }

    pub fn sign(&self, _input: &[u8]) -> Result<Vec<u8>, Error> {
        match *self {}
    }

    pub fn public_key(&self) -> String {
        match *self {}
    }
}
