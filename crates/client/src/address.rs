//! Where a server is.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a server listens, and the token it requires.
#[derive(Clone, PartialEq, Eq)]
pub enum Address {
    /// A socket file; its permissions decide who may connect.
    Unix(PathBuf),
    Tcp {
        addr: SocketAddr,
        token: Option<String>,
    },
}

impl Address {
    /// Where it is, as an error says it: a path, or a URL.
    pub fn place(&self) -> String {
        match self {
            Self::Unix(path) => path.display().to_string(),
            Self::Tcp { .. } => self.to_string(),
        }
    }

    pub(crate) fn token(&self) -> Option<&str> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp { token, .. } => token.as_deref(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(out, "unix:{}", path.display()),
            Self::Tcp { addr, .. } => write!(out, "http://{addr}"),
        }
    }
}

/// The token stays out of logs.
impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_shown() {
        let addr = "127.0.0.1:80".parse().unwrap();
        let address = Address::Tcp { addr, token: Some("secret".into()) };
        assert_eq!(
            format!("{address} {address:?}"),
            "http://127.0.0.1:80 Address(http://127.0.0.1:80)"
        );
    }
}
