//! The config file: one table of settings, each with its line.

use std::env;
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::ConfigError;
use super::choice::{Given, Origin};
use super::trust;
use super::{ALL, Kind};
use crate::paths;

/// The file that was named, else the default one if it exists.
pub(super) fn find(asked_for: Option<&Path>) -> Option<PathBuf> {
    named(asked_for).or_else(|| {
        let usual = paths::config_home()?.join("lastbyte/config.toml");
        is_there(&usual).then_some(usual)
    })
}

/// The file that was named by flag or variable.
pub(crate) fn named(asked_for: Option<&Path>) -> Option<PathBuf> {
    let variable = env::var_os("LASTBYTE_CONFIG").filter(|path| !path.is_empty());
    asked_for.map(Path::to_owned).or_else(|| variable.map(PathBuf::from))
}

/// A file that cannot be examined counts as existing; opening it reports what is wrong.
fn is_there(path: &Path) -> bool {
    let absent = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    };
    !fs::symlink_metadata(path).is_err_and(|error| absent(&error))
}

/// Everything that the file sets.
pub(super) fn read(path: &Path) -> Result<Vec<Given>, ConfigError> {
    let failed = |source| ConfigError::Read { path: path.into(), source };
    // What it says of other files is seen from its own folder, wherever we are.
    let path = std::path::absolute(path).map_err(failed)?;
    // Whatever it is, it is looked at before it is waited for.
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    let mut file =
        OpenOptions::new().read(true).custom_flags(at_once).open(&path).map_err(failed)?;
    trust::check(&path, &file)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(failed)?;
    let text = String::from_utf8(text).map_err(|_| ConfigError::NotText { path: path.clone() })?;
    File { path: &path, text: &text }.settings()
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn settings(&self) -> Result<Vec<Given>, ConfigError> {
        let table = DeTable::parse(self.text).map_err(|error| {
            let at = error.span().unwrap_or_default().start;
            self.refused(at, format_args!("invalid TOML: {}", error.message()))
        })?;
        let settings = table.get_ref().iter();
        settings.map(|(key, value)| self.setting(key, value.get_ref())).collect()
    }

    fn setting(
        &self,
        key: &Spanned<DeString<'_>>,
        value: &DeValue<'_>,
    ) -> Result<Given, ConfigError> {
        let (name, at) = (key.get_ref(), key.span().start);
        let Some(setting) = ALL.into_iter().find(|setting| setting.name == name) else {
            let names = ALL.map(|setting| setting.name).join(", ");
            let what = format_args!("unknown setting {name:?}; settings are {names}");
            return Err(self.refused(at, what));
        };
        let Some(values) = self.values(setting.kind, value) else {
            let wanted = match setting.kind {
                Kind::Text | Kind::Hidden | Kind::Path => "a quoted string",
                Kind::List => "a list of strings, like [\"a\", \"b\"]",
                Kind::Switch => "true or false",
                Kind::Number => "a number or a quoted string",
            };
            return Err(self.refused(at, format_args!("{name} must be {wanted}")));
        };
        if value.as_str() == Some("") {
            return Err(self.refused(at, format_args!("{name} is empty")));
        }
        Ok(Given { setting, values, origin: self.origin(at) })
    }

    fn refused(&self, at: usize, what: impl Display) -> ConfigError {
        ConfigError::Value { origin: self.origin(at), what: what.to_string() }
    }

    /// As the command line would have them; `None` for a value of another type.
    fn values(&self, kind: Kind, value: &DeValue<'_>) -> Option<Vec<OsString>> {
        match (kind, value) {
            (Kind::Text | Kind::Hidden | Kind::Number, DeValue::String(text)) => {
                Some(vec![text.as_ref().into()])
            }
            (Kind::Number, DeValue::Integer(number)) => Some(vec![number.to_string().into()]),
            (Kind::Path, DeValue::String(text)) => {
                let folder = self.path.parent().unwrap_or(Path::new("/"));
                Some(vec![folder.join(text.as_ref()).into()])
            }
            (Kind::Switch, DeValue::Boolean(on)) => Some(vec![on.to_string().into()]),
            (Kind::List, DeValue::Array(items)) => {
                items.iter().map(|item| Some(item.get_ref().as_str()?.into())).collect()
            }
            _ => None,
        }
    }

    /// The line of a byte, counted from 1.
    fn origin(&self, at: usize) -> Origin {
        let before = self.text.get(..at).unwrap_or_default();
        Origin::File { path: self.path.into(), line: before.matches('\n').count() + 1 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use lastbyte_testkit::{Corpus, fuzz};

    use super::*;

    /// A name, its values, its line.
    type Read = (&'static str, Vec<OsString>, usize);

    fn read_text(text: &str) -> Result<Vec<Read>, String> {
        let settings = File { path: Path::new("/etc/c.toml"), text }.settings();
        let settings = settings.map_err(|error| error.to_string())?;
        let parts = settings.into_iter().map(|given| match given.origin {
            Origin::File { line, .. } => (given.setting.name, given.values, line),
            Origin::Variable(name) => panic!("{name} is not in the file"),
        });
        Ok(parts.collect())
    }

    #[test]
    fn a_setting_has_its_line() {
        let text = "# mine\nlog = \"warn\"\n\nlisten = [\n  \"[::1]:1\", 'b']\nno-auth = true\n";
        let want = [
            ("listen", vec!["[::1]:1".into(), "b".into()], 4),
            ("log", vec!["warn".into()], 2),
            ("no-auth", vec!["true".into()], 6),
        ];
        let mut found = read_text(text).unwrap();
        found.sort();
        assert_eq!(found, want);
    }

    #[test]
    fn a_number_needs_no_quotes() {
        let found = read_text("keep-per-session = 1_000\nkeep-bytes = \"1GiB\"").unwrap();
        let values: Vec<_> = found.into_iter().flat_map(|(_, values, _)| values).collect();
        assert_eq!(values, ["1GiB", "1000"]);
    }

    #[test]
    fn a_path_is_seen_from_the_files_folder() {
        let found = read_text("state = \"a\"\nworkdir = \"/b\"").unwrap();
        let values: Vec<_> = found.into_iter().flat_map(|(_, values, _)| values).collect();
        assert_eq!(values, ["/etc/a", "/b"]);
    }

    #[test]
    fn what_is_no_setting_is_refused_with_its_line() {
        for (text, want) in [
            (
                "log = \"warn\"\nlisen = []",
                "/etc/c.toml:2: unknown setting \"lisen\"; settings are state",
            ),
            ("[serve]\nlog = \"warn\"", "/etc/c.toml:1: unknown setting \"serve\""),
            ("\nlisten = \"a\"", "/etc/c.toml:2: listen must be a list of strings"),
            ("listen = [1]", "/etc/c.toml:1: listen must be a list of strings"),
            ("keep-bytes = true", "/etc/c.toml:1: keep-bytes must be a number or a quoted string"),
            ("no-auth = 1", "/etc/c.toml:1: no-auth must be true or false"),
            ("\nstate = \"\"", "/etc/c.toml:2: state is empty"),
            ("state = false", "/etc/c.toml:1: state must be a quoted string"),
            ("log = \"warn\"\nlog = \"off\"", "/etc/c.toml:2: invalid TOML"),
            ("\n\nlog =", "/etc/c.toml:3: invalid TOML"),
        ] {
            let error = read_text(text).unwrap_err();
            assert!(error.starts_with(want), "{text:?}: {error}");
        }
    }

    /// A file that is taken sets each of its settings once, at a line that it has, and says the same when it is
    /// written again. One that is refused is refused for one of its lines.
    #[test]
    fn no_file_does_harm() {
        let words: Vec<String> =
            ALL.iter().map(|setting| format!("\n{} = ", setting.name)).collect();
        let marks = [
            "\"",
            "\"\"\"",
            "[",
            "]",
            "{",
            "\\u0000",
            "\\\n",
            "1_0",
            "0x7f",
            "true",
            "1979-05-27",
            ".",
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).chain(marks).collect();
        let made = [
            "state = \"a\"\nlisten = [\"[::1]:1\", 'b']\nno-auth = true\nkeep-bytes = 10\n",
            "# mine\r\nlog = \"\"\"\\\n  warn\"\"\"\n\n[serve]\na.b = {c = 1}",
        ];
        let made = made.map(|text| text.as_bytes().to_vec()).to_vec();
        fuzz(Corpus { name: "config", made, words: &words }, |bytes| {
            let text = std::str::from_utf8(bytes).ok()?;
            let lines = 1..=text.matches('\n').count() + 1;
            let read = read_text(text);
            match &read {
                Ok(read) => {
                    let names: HashSet<_> = read.iter().map(|(name, ..)| name).collect();
                    assert_eq!(names.len(), read.len());
                    assert!(read.iter().all(|(_, _, line)| lines.contains(line)), "{read:?}");
                    assert_eq!(unplaced(&read_text(&written(read)).unwrap()), unplaced(read));
                }
                Err(error) => {
                    let rest = error.strip_prefix("/etc/c.toml:").unwrap();
                    let line: usize = rest.split(':').next().unwrap().parse().unwrap();
                    assert!(lines.contains(&line), "{error}");
                }
            }
            let kind =
                |error: String| error.chars().filter(|it| !it.is_ascii_digit()).take(40).collect();
            Some(read.map(|read| read.len()).map_err::<String, _>(kind))
        });
    }

    /// Names and values in an order of their own.
    fn unplaced(read: &[Read]) -> Vec<(&'static str, &[OsString])> {
        let mut unplaced: Vec<_> =
            read.iter().map(|(name, values, _)| (*name, &values[..])).collect();
        unplaced.sort();
        unplaced
    }

    /// A file with these settings.
    fn written(read: &[Read]) -> String {
        // JSON has the escapes of TOML; only this character it leaves as it is.
        let quoted = |value: &OsString| {
            serde_json::to_string(value.to_str().unwrap()).unwrap().replace('\x7f', "\\u007f")
        };
        let line = |(name, values, _): &Read| {
            let kind = ALL.into_iter().find(|setting| setting.name == *name).unwrap().kind;
            let value = match kind {
                Kind::List => {
                    format!("[{}]", values.iter().map(quoted).collect::<Vec<_>>().join(","))
                }
                Kind::Switch => values[0].to_str().unwrap().to_owned(),
                Kind::Text | Kind::Hidden | Kind::Path | Kind::Number => quoted(&values[0]),
            };
            format!("{name} = {value}\n")
        };
        read.iter().map(line).collect()
    }
}
