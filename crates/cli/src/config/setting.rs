//! The settings there are. Each has the name of its flag; the variable is made of it.

use std::ffi::OsStr;

/// One thing that can be set by a flag, a variable or a line of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setting {
    /// As it stands in the file, and behind two dashes on the command line.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// What a setting looks like where it has no type of its own yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// Text that may have a secret in it, and is not shown.
    Hidden,
    /// In the file it is seen from the file's folder.
    Path,
    /// In a variable separated by commas.
    List,
    Switch,
}

pub(crate) const ALL: [Setting; 11] = [
    Setting::new("state", Kind::Path),
    Setting::new("socket", Kind::Path),
    Setting::new("listen", Kind::List),
    Setting::new("no-auth", Kind::Switch),
    Setting::new("host", Kind::List),
    Setting::new("workdir", Kind::Path),
    Setting::new("env-hook", Kind::Hidden),
    Setting::new("default-sandbox", Kind::Text),
    Setting::new("log", Kind::Text),
    Setting::new("server", Kind::Text),
    Setting::new("token-file", Kind::Path),
];

/// The setting with this name.
pub(super) fn of_name(name: &str) -> Option<Setting> {
    ALL.into_iter().find(|setting| setting.name == name)
}

/// The setting that this variable is for.
pub(crate) fn of_variable(variable: &OsStr) -> Option<Setting> {
    ALL.into_iter().find(|setting| setting.variable().as_str() == variable)
}

impl Setting {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind }
    }

    /// `LASTBYTE_NO_AUTH` for `no-auth`.
    pub(crate) fn variable(self) -> String {
        format!("LASTBYTE_{}", self.name.replace('-', "_").to_uppercase())
    }

    /// And not of those alone who talk to one.
    pub(crate) fn is_of_a_server(self) -> bool {
        !matches!(self.name, "server" | "token-file")
    }

    /// What clap calls the flag.
    pub(super) fn flag_id(self) -> String {
        self.name.replace('-', "_")
    }
}
