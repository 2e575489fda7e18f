//! The secret that TCP clients must send.

use std::fmt;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

/// A secret of at least [`Token::SHORTEST`] characters. It is never shown.
#[derive(Clone)]
pub struct Token(String);

/// Why the token cannot be read or created.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("cannot read the token file {path}", path = path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot create the token file {path}", path = path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error(
        "other users can access the token file {path} (mode {mode:03o}, uid {owner}); delete it, and a \
         new one is created",
        path = path.display()
    )]
    NotPrivate { path: PathBuf, mode: u32, owner: u32 },
    #[error(
        "the token file {path} has no valid token (at least {shortest} ASCII characters without \
         spaces): delete it to get a new one", path = path.display(), shortest = Token::SHORTEST
    )]
    NoToken { path: PathBuf },
}

impl Token {
    /// Fewer characters can be guessed.
    pub const SHORTEST: usize = 32;

    /// Where the token of a state folder is kept.
    pub fn file_in(state: &Path) -> PathBuf {
        state.join("token")
    }

    /// The token that the file has, or a new one in a new file. One program at a time may ask for
    /// the same state folder.
    pub fn read_or_create(state: &Path) -> Result<Self, TokenError> {
        let path = Self::file_in(state);
        let open = File::options()
            .read(true)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(&path);
        match open {
            Ok(file) => Self::read(file, path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::create(path),
            Err(source) => Err(TokenError::Read { path, source }),
        }
    }

    /// Whether this is the token. Takes the same time wherever the first difference is.
    pub(super) fn is(&self, given: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let differences = own.iter().zip(given).fold(0, |found, (a, b)| black_box(found | (a ^ b)));
        black_box(differences) == 0 && own.len() == given.len()
    }

    fn read(file: File, path: PathBuf) -> Result<Self, TokenError> {
        let read = |file: &File| {
            let mut text = String::new();
            // Longer than any token, so that a wrong file is not read to its end.
            file.take(4096).read_to_string(&mut text)?;
            Ok((file.metadata()?, text))
        };
        let (found, text) =
            read(&file).map_err(|source| TokenError::Read { path: path.clone(), source })?;
        if found.mode() & 0o077 != 0 || found.uid() != geteuid().as_raw() {
            let (mode, owner) = (found.mode() & 0o777, found.uid());
            return Err(TokenError::NotPrivate { path, mode, owner });
        }
        let text = text.trim();
        let whole =
            text.len() >= Self::SHORTEST && text.bytes().all(|byte| byte.is_ascii_graphic());
        whole.then(|| Self(text.to_owned())).ok_or(TokenError::NoToken { path })
    }

    /// Writes it whole under another name first: a token file is never half a token.
    fn create(path: PathBuf) -> Result<Self, TokenError> {
        let new = path.with_extension("new");
        let write = || {
            let token = Self::random()?;
            // What a start that was cut short has left.
            match fs::remove_file(&new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new)?;
            writeln!(file, "{}", token.0)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            Ok(token)
        };
        write().map_err(|source| TokenError::Create { path: path.clone(), source })
    }

    /// 256 bits from the kernel.
    fn random() -> io::Result<Self> {
        random_text().map(Self)
    }
}

/// 256 bits as text.
pub(crate) fn random_text() -> io::Result<String> {
    let mut bytes = [0; 32];
    // Up to 256 bytes come whole, once the kernel has gathered enough.
    rustix::io::retry_on_intr(|| getrandom(&mut bytes, GetRandomFlags::empty()))?;
    Ok(base64_simd::URL_SAFE_NO_PAD.encode_to_string(bytes))
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const GOOD: &str = "0123456789abcdef0123456789abcdef";

    fn folder_with(token: &str, mode: u32) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let file = Token::file_in(folder.path());
        fs::write(&file, token).unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        folder
    }

    #[test]
    fn a_token_is_made_once_and_for_this_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let made = Token::read_or_create(folder.path()).unwrap();
        let file = Token::file_in(folder.path());
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{}\n", made.0));
        assert_eq!(made.0.len(), 43, "256 bits in base64");
        let again = Token::read_or_create(folder.path()).unwrap();
        assert_eq!(again.0, made.0);
        let elsewhere = Token::read_or_create(tempfile::tempdir().unwrap().path()).unwrap();
        assert_ne!(elsewhere.0, made.0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_start_that_was_cut_short_has_left_is_in_nobodys_way() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("token.new"), "half").unwrap();
        Token::read_or_create(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_token_that_others_can_read_is_refused() {
        for mode in [0o640, 0o604, 0o620, 0o660] {
            let error = Token::read_or_create(folder_with(GOOD, mode).path()).unwrap_err();
            assert!(matches!(error, TokenError::NotPrivate { .. }), "{error}");
            assert!(error.to_string().contains(&format!("mode {mode:03o}")), "{error}");
        }
        assert!(Token::read_or_create(folder_with(GOOD, 0o400).path()).is_ok());
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for text in
            ["", "short", "0123456789abcdef 0123456789abcdef", "ä123456789abcdef0123456789abcdef"]
        {
            let error = Token::read_or_create(folder_with(text, 0o600).path()).unwrap_err();
            assert!(matches!(error, TokenError::NoToken { .. }), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_link_is_not_followed() {
        let (target, folder) = (folder_with(GOOD, 0o600), tempfile::tempdir().unwrap());
        symlink(Token::file_in(target.path()), Token::file_in(folder.path())).unwrap();
        let error = Token::read_or_create(folder.path()).unwrap_err();
        assert!(matches!(error, TokenError::Read { .. }), "{error}");
    }

    #[test]
    fn only_the_whole_token_is_the_token() {
        let token = Token(GOOD.into());
        assert!(token.is(GOOD.as_bytes()));
        for given in ["", &GOOD[..31], &GOOD.replace('a', "A"), &format!("{GOOD}0")] {
            assert!(!token.is(given.as_bytes()), "{given:?}");
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        assert_eq!(format!("{:?}", Token(GOOD.into())), "Token");
    }
}
