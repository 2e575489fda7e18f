//! The environment of a command: a base, the launch's edits, and forced variables.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::future::Future;
use std::os::unix::ffi::OsStrExt;
use std::pin::Pin;

use lastbyte_output::mask::Secret;

use crate::launch::EnvEdit;

/// The variable that marks every process of a tree.
pub(crate) const COOKIE: &str = "LASTBYTE_ID";

/// Names and values, each name once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

/// The base environment is not available.
#[derive(Debug, thiserror::Error)]
#[error("the environment provider failed")]
pub struct ProviderError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// Provides the base environment at each start. If it fails, the engine uses its own and the start
/// carries a warning.
pub trait EnvironmentProvider: Send + Sync + fmt::Debug {
    fn environment<'a>(
        &'a self,
        own: &'a Environment,
    ) -> Pin<Box<dyn Future<Output = Result<Environment, ProviderError>> + Send + 'a>>;
}

impl Environment {
    /// The environment of this program.
    pub fn own() -> Self {
        Self(std::env::vars_os().collect())
    }

    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.0.get(name.as_ref()).map(OsString::as_os_str)
    }

    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.0.insert(name.into(), value.into());
    }

    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    pub(crate) fn edit(&mut self, edits: &[EnvEdit]) {
        for edit in edits {
            match edit {
                EnvEdit::Set(name, value) => self.set(name, value),
                EnvEdit::Unset(name) => _ = self.0.remove(name),
            }
        }
    }

    pub(crate) fn add(&mut self, secrets: &[Secret]) {
        for secret in secrets {
            self.set(secret.name(), OsStr::from_bytes(secret.value()));
        }
    }

    pub(crate) fn force(&mut self, forced: &[(OsString, OsString)]) {
        for (name, value) in forced {
            self.set(name, value);
        }
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<T: IntoIterator<Item = (OsString, OsString)>>(pairs: T) -> Self {
        Self(pairs.into_iter().collect())
    }
}
