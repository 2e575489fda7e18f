//! Tokens that were created for clients: only their hashes are stored.
//!
//! The file `tokens` in the state folder has one entry for each. The server reads it once; from then
//! on it is the only one that writes it.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use lastbyte_wire::{CreateTokenAnswer, TokenInfo, TokenScope};
use rustix::fs::OFlags;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::scope::{CreatedLife, Grant, Scope, TokenLife};
use super::token::{TokenError, random_text};
use crate::to_wire::unix_ns;

/// The tokens of a state folder.
#[derive(Debug)]
pub struct CreatedTokens {
    path: PathBuf,
    /// In a watch channel, so that open connections notice a revocation.
    tokens: watch::Sender<Vec<CreatedToken>>,
    /// Held while the file is written.
    writing: Mutex<()>,
}

/// A token without its secret, and the hash of the whole text. The text has 256 random bits, so a
/// plain hash cannot be guessed back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CreatedToken {
    pub(super) info: TokenInfo,
    sha256: String,
}

/// What the file has.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    tokens: Vec<CreatedToken>,
}

/// Every created token begins with this, so that others are not hashed.
const PREFIX: &str = "lb_";
/// More would be created by mistake.
const MOST: usize = 1000;
/// Larger than the file with that many.
const MOST_BYTES: u64 = 4 << 20;

impl CreatedTokens {
    /// Where those of a state folder are kept.
    pub fn file_in(state: &Path) -> PathBuf {
        state.join("tokens")
    }

    pub fn open(state: &Path) -> Result<Self, TokenError> {
        let path = Self::file_in(state);
        let open = File::options()
            .read(true)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(&path);
        let stored = match open {
            Ok(file) => read(&file, &path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Stored::default(),
            Err(source) => return Err(TokenError::Read { path, source }),
        };
        let tokens = watch::Sender::new(stored.tokens);
        Ok(Self { path, tokens, writing: Mutex::default() })
    }

    /// Blocks while the file is written.
    pub fn create(
        &self,
        scope: TokenScope,
        expires_in: Option<Duration>,
        note: Option<String>,
    ) -> io::Result<CreateTokenAnswer> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tokens = self.tokens.borrow().clone();
        if tokens.len() >= MOST {
            return Err(io::Error::other(format!("there are {MOST} tokens already; revoke some")));
        }
        let (now, secret) = (SystemTime::now(), random_text()?);
        let id = secret.bytes().filter(u8::is_ascii_alphanumeric).take(8).map(char::from);
        let id = id.collect::<String>().to_ascii_lowercase();
        let token = format!("{PREFIX}{id}_{}", random_text()?);
        let expires_unix_ns = expires_in.and_then(|time| now.checked_add(time)).map(unix_ns);
        let info = TokenInfo { id, scope, created_unix_ns: unix_ns(now), expires_unix_ns, note };
        tokens.push(CreatedToken { info: info.clone(), sha256: hash(token.as_bytes()) });
        self.store(tokens)?;
        Ok(CreateTokenAnswer { token, info })
    }

    /// Says whether there was one. Open connections of its clients are closed. Blocks while the file
    /// is written.
    pub fn revoke(&self, id: &str) -> io::Result<bool> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tokens = self.tokens.borrow().clone();
        let before = tokens.len();
        tokens.retain(|token| token.info.id != id);
        if tokens.len() == before {
            return Ok(false);
        }
        self.store(tokens)?;
        Ok(true)
    }

    /// Oldest first.
    pub fn list(&self) -> Vec<TokenInfo> {
        self.tokens.borrow().iter().map(|token| token.info.clone()).collect()
    }

    /// What this token allows now; `None` if there is none, or if it has expired.
    pub(super) fn find(&self, given: &[u8]) -> Option<Grant> {
        if !given.starts_with(PREFIX.as_bytes()) {
            return None;
        }
        let sha256 = hash(given);
        let tokens = self.tokens.borrow();
        // A comparison of hashes tells nothing of the secret by the time it takes.
        let CreatedToken { info, .. } = tokens.iter().find(|token| token.sha256 == sha256)?;
        let life = Some(TokenLife::Created(self.life(info)?));
        Some(Grant { scope: Scope::from(&info.scope), life, page: None })
    }

    /// How long the token with this id is valid; `None` if it is not.
    pub(super) fn life_of(&self, id: &str) -> Option<CreatedLife> {
        let tokens = self.tokens.borrow();
        tokens.iter().find(|token| token.info.id == id).and_then(|token| self.life(&token.info))
    }

    fn life(&self, info: &TokenInfo) -> Option<CreatedLife> {
        let expires = info.expires_unix_ns;
        if expires.is_some_and(|end| end <= unix_ns(SystemTime::now())) {
            return None;
        }
        Some(CreatedLife {
            id: info.id.clone(),
            expires: expires.map(|end| SystemTime::UNIX_EPOCH + Duration::from_nanos(end)),
            tokens: self.tokens.subscribe(),
        })
    }

    /// On disk first. Written whole under another name, so that the file is never half of itself.
    fn store(&self, tokens: Vec<CreatedToken>) -> io::Result<()> {
        let new = self.path.with_extension("new-tokens");
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new)?;
        let stored = Stored { tokens };
        file.write_all(&serde_json::to_vec_pretty(&stored)?)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        self.tokens.send_replace(stored.tokens);
        Ok(())
    }
}

fn read(file: &File, path: &Path) -> Result<Stored, TokenError> {
    let failed = |source| TokenError::Read { path: path.to_owned(), source };
    let found = file.metadata().map_err(failed)?;
    if found.mode() & 0o077 != 0 || found.uid() != geteuid().as_raw() {
        let (mode, owner) = (found.mode() & 0o777, found.uid());
        return Err(TokenError::NotPrivate { path: path.to_owned(), mode, owner });
    }
    let mut text = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut text).map_err(failed)?;
    serde_json::from_slice(&text).map_err(|error| failed(error.into()))
}

pub(super) fn hash(token: &[u8]) -> String {
    Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_stored_as_its_hash_alone_and_read_again() {
        let state = tempfile::tempdir().unwrap();
        let tokens = CreatedTokens::open(state.path()).unwrap();
        let made = tokens.create(TokenScope::ReadOnly, None, Some("ci".into())).unwrap();
        let text = fs::read_to_string(CreatedTokens::file_in(state.path())).unwrap();
        assert!(!text.contains(&made.token) && text.contains(&made.info.id), "{text}");
        let mode = fs::metadata(CreatedTokens::file_in(state.path())).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = CreatedTokens::open(state.path()).unwrap();
        assert_eq!(again.list(), [made.info]);
        assert_eq!(again.find(made.token.as_bytes()).unwrap().scope, Scope::ReadOnly);
        for wrong in ["", "lb_", &made.token[1..], &format!("{}x", made.token)] {
            assert!(again.find(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_revoked_token_and_an_expired_one_are_like_none() {
        let state = tempfile::tempdir().unwrap();
        let tokens = CreatedTokens::open(state.path()).unwrap();
        let expired = tokens.create(TokenScope::All, Some(Duration::ZERO), None).unwrap();
        assert!(tokens.find(expired.token.as_bytes()).is_none());
        let made = tokens.create(TokenScope::All, Some(Duration::from_secs(60)), None).unwrap();
        assert!(tokens.find(made.token.as_bytes()).is_some());
        assert!(tokens.revoke(&made.info.id).unwrap());
        assert!(!tokens.revoke(&made.info.id).unwrap());
        assert!(tokens.find(made.token.as_bytes()).is_none());
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let state = tempfile::tempdir().unwrap();
        let path = CreatedTokens::file_in(state.path());
        fs::write(&path, "{\"tokens\":[]}").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = CreatedTokens::open(state.path()).unwrap_err();
        assert!(matches!(error, TokenError::NotPrivate { mode: 0o644, .. }), "{error}");
    }
}
