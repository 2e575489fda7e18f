//! Logging in to the broker with an NKEY: the seed signs what the server says first.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use async_nats::Auth;
use ring::signature::{Ed25519KeyPair, KeyPair};

/// A seed, and the JWT of the user it belongs to if there is one.
#[derive(Clone)]
pub(crate) struct Credentials {
    jwt: Option<String>,
    public: String,
    pair: Arc<Ed25519KeyPair>,
}

/// Why a file has no credentials.
#[derive(Debug, thiserror::Error)]
pub enum BadCredentials {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("it has no seed of a user: a line that starts with SU")]
    NoSeed,
    #[error("its seed is damaged")]
    BadSeed,
}

/// `S` and `U` as the first bits of a seed, and `U` as those of a public key.
const SEED: u8 = 18 << 3;
const USER: u8 = 20 << 3;

impl Credentials {
    pub(crate) fn read(path: &Path) -> Result<Self, BadCredentials> {
        Self::parse(&fs::read_to_string(path)?)
    }

    fn parse(text: &str) -> Result<Self, BadCredentials> {
        let mut lines = text.lines().map(str::trim);
        let seed = lines.clone().find(|line| line.starts_with("SU") && line.len() == 58);
        let jwt = lines.find(|line| line.starts_with("eyJ") && line.contains('.'));
        let seed =
            from_base32(seed.ok_or(BadCredentials::NoSeed)?).ok_or(BadCredentials::BadSeed)?;
        let (bytes, sum) = seed.split_at_checked(34).ok_or(BadCredentials::BadSeed)?;
        let is_user = bytes[0] & 0xf8 == SEED && (bytes[0] & 7) << 5 | bytes[1] >> 3 == USER;
        if !is_user || sum != crc16(bytes).to_le_bytes() {
            return Err(BadCredentials::BadSeed);
        }
        let pair = Ed25519KeyPair::from_seed_unchecked(&bytes[2..]);
        let pair = pair.map_err(|_| BadCredentials::BadSeed)?;
        let mut public = vec![USER];
        public.extend_from_slice(pair.public_key().as_ref());
        public.extend_from_slice(&crc16(&public).to_le_bytes());
        let public = to_base32(&public);
        Ok(Self { jwt: jwt.map(str::to_owned), public, pair: Arc::new(pair) })
    }

    /// Where answers to this user go: nobody else needs to be allowed to subscribe there.
    pub(crate) fn inboxes(&self) -> String {
        format!("_INBOX.{}", self.public)
    }

    /// What the server wants to see.
    pub(crate) fn answer(&self, nonce: &[u8]) -> Auth {
        let mut auth = Auth::new();
        auth.jwt.clone_from(&self.jwt);
        if self.jwt.is_none() {
            auth.nkey = Some(self.public.clone());
        }
        auth.signature = Some(self.pair.sign(nonce).as_ref().to_vec());
        auth
    }
}

const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn from_base32(text: &str) -> Option<Vec<u8>> {
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for digit in text.bytes() {
        let value = DIGITS.iter().position(|known| *known == digit)?;
        bits = bits << 5 | value as u32;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

fn to_base32(bytes: &[u8]) -> String {
    let (mut bits, mut count, mut text) = (0_u32, 0, String::new());
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        count += 8;
        while count >= 5 {
            count -= 5;
            text.push(DIGITS[(bits >> count) as usize & 31].into());
        }
        bits &= (1 << count) - 1;
    }
    if count > 0 {
        text.push(DIGITS[(bits << (5 - count)) as usize & 31].into());
    }
    text
}

/// CRC-16 with the polynomial of XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum: u16, _| {
            if sum & 0x8000 == 0 { sum << 1 } else { sum << 1 ^ 0x1021 }
        })
    })
}
