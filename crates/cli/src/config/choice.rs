//! What is chosen, of all that variables and the file say.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::ConfigError;
use super::file;
use super::{ALL, Kind, Setting};

/// A setting, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) setting: Setting,
    /// As the command line would have them.
    pub(crate) values: Vec<OsString>,
    pub(crate) origin: Origin,
}

/// Where a setting was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Variable(String),
    File { path: PathBuf, line: usize },
}

/// At most one of each setting.
#[derive(Debug)]
pub(crate) struct Choice {
    /// The file that was read.
    pub(crate) file: Option<PathBuf>,
    pub(crate) given: Vec<Given>,
}

impl Choice {
    /// Reads the variables, and the named or the default file.
    pub(crate) fn load(config: Option<&Path>) -> Result<Self, ConfigError> {
        let file = file::find(config);
        let from_file = file.as_deref().map(file::read).transpose()?.unwrap_or_default();
        let from_variables = variables()?;
        Ok(Self { file, given: choose(from_variables, from_file) })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Given> {
        self.given.iter().find(|given| given.setting.name == name)
    }

    /// Without settings that name another server by URL.
    pub(super) fn without_server(mut self) -> Self {
        self.given.retain(|given| given.setting.is_for_server());
        self
    }
}

fn choose(from_variables: Vec<Given>, from_file: Vec<Given>) -> Vec<Given> {
    let has = |name: &str| from_variables.iter().any(|given| given.setting.name == name);
    // A server is named by its socket or by its URL: a place that sets one overrides the other.
    let by_path = (has("socket") || has("state")) && !has("server");
    let hidden =
        |given: &Given| has(given.setting.name) || (by_path && !given.setting.is_for_server());
    let left: Vec<Given> = from_file.into_iter().filter(|given| !hidden(given)).collect();
    from_variables.into_iter().chain(left).collect()
}

/// An empty variable counts as not set.
fn variables() -> Result<Vec<Given>, ConfigError> {
    let given = |setting: Setting| {
        let value = env::var_os(setting.variable()).filter(|value| !value.is_empty())?;
        Some(from_variable(setting, value))
    };
    ALL.into_iter().filter_map(given).collect()
}

fn from_variable(setting: Setting, value: OsString) -> Result<Given, ConfigError> {
    let variable = setting.variable();
    let values = match setting.kind {
        Kind::Text | Kind::Hidden | Kind::Path | Kind::Number => vec![value],
        Kind::List => {
            let items = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            items.map(|item| OsStr::from_bytes(item).to_owned()).collect()
        }
        Kind::Switch => match value.as_bytes() {
            b"true" | b"1" => vec!["true".into()],
            b"false" | b"0" => vec!["false".into()],
            _ => return Err(ConfigError::Switch { variable, given: value }),
        },
    };
    Ok(Given { setting, values, origin: Origin::Variable(variable) })
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => out.write_str(name),
            Self::File { path, line } => write!(out, "{}:{line}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, value: &str) -> Given {
        let setting = ALL.into_iter().find(|setting| setting.name == name).unwrap();
        from_variable(setting, value.into()).unwrap()
    }

    fn in_file(name: &str, value: &str) -> Given {
        let origin = Origin::File { path: "/c".into(), line: 1 };
        Given { origin, ..variable(name, value) }
    }

    #[test]
    fn a_variable_wins_over_the_file() {
        let chosen = choose(
            vec![variable("log", "off")],
            vec![in_file("log", "warn"), in_file("host", "a")],
        );
        assert_eq!(chosen, [variable("log", "off"), in_file("host", "a")]);
    }

    #[test]
    fn a_socket_in_a_variable_wins_over_a_server_in_the_file() {
        let file = || vec![in_file("server", "http://[::1]:1"), in_file("token-file", "/t")];
        for name in ["socket", "state"] {
            assert_eq!(choose(vec![variable(name, "/s")], file()), [variable(name, "/s")]);
        }
        assert_eq!(choose(vec![variable("log", "off")], file()).len(), 3);
    }

    #[test]
    fn a_list_in_a_variable_has_commas_and_a_switch_two_words() {
        assert_eq!(variable("host", "a, b,c").values, ["a", "b", "c"]);
        assert_eq!(variable("no-auth", "1").values, ["true"]);
        let setting = variable("no-auth", "false").setting;
        let error = from_variable(setting, "yes".into()).unwrap_err().to_string();
        assert_eq!(error, "LASTBYTE_NO_AUTH must be true, false, 1 or 0, not \"yes\"");
    }
}
