//! The environment of a command: exactly what the request says, or what its policy makes of the
//! server's own.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use lastbyte_engine::{EnvEdit, Environment};
use serde::Deserialize;

use crate::doors::rpc::is_hidden;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EnvPolicy {
    inherit: Inherit,
    ignore_default_excludes: bool,
    exclude: Vec<String>,
    set: BTreeMap<String, String>,
    include_only: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Inherit {
    All,
    Core,
    None,
}

const CORE: [&str; 11] = [
    "PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME",
    "USER",
];
/// They look like secrets.
const DEFAULT_EXCLUDES: [&str; 3] = ["*KEY*", "*SECRET*", "*TOKEN*"];
/// More names for Codex alone: a command that knew the first could ask this server to run anything.
const HIDDEN: [&str; 2] = ["CODEX_EXEC_SERVER_URL", "CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE"];

/// The variables of a command, as edits of an empty environment.
pub(super) fn variables(
    policy: Option<&EnvPolicy>,
    own: &Environment,
    requested: BTreeMap<String, String>,
) -> Vec<EnvEdit> {
    let mut variables = policy.map(|policy| policy.apply(own)).unwrap_or_default();
    variables.extend(requested);
    let is_passed = |name: &String| {
        !is_hidden(name) && !HIDDEN.iter().any(|hidden| hidden.eq_ignore_ascii_case(name))
    };
    let passed = variables.into_iter().filter(|(name, _)| is_passed(name));
    passed.map(|(name, value)| EnvEdit::Set(name.into(), value.into())).collect()
}

impl EnvPolicy {
    fn apply(&self, own: &Environment) -> BTreeMap<String, String> {
        let text = |text: &OsStr| text.to_str().map(str::to_owned);
        // What is not UTF-8 cannot be matched with a pattern.
        let own = own.iter().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        let mut variables: BTreeMap<String, String> = match self.inherit {
            Inherit::All => own.collect(),
            Inherit::Core => own.filter(|(name, _)| is_core(name)).collect(),
            Inherit::None => BTreeMap::new(),
        };
        if !self.ignore_default_excludes {
            variables.retain(|name, _| !DEFAULT_EXCLUDES.iter().any(|glob| matches(glob, name)));
        }
        variables.retain(|name, _| !self.exclude.iter().any(|glob| matches(glob, name)));
        variables.extend(self.set.clone());
        if !self.include_only.is_empty() {
            variables.retain(|name, _| self.include_only.iter().any(|glob| matches(glob, name)));
        }
        variables
    }
}

fn is_core(name: &str) -> bool {
    CORE.iter().any(|core| core.eq_ignore_ascii_case(name))
}

/// Whether a name matches a pattern in which `*` is any text and `?` any character, without regard to
/// case. Takes at most as many steps as the product of their lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let lower = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    let (pattern, name) = (lower(pattern), lower(name));
    let (mut at, mut next) = (0, 0);
    // Where to go on if the rest does not match: behind the last star, one character later.
    let mut star = None;
    while next < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, next));
                at += 1;
            }
            Some(&symbol) if symbol == '?' || symbol == name[next] => {
                at += 1;
                next += 1;
            }
            Some(_) | None => {
                let Some((behind, from)) = star else { return false };
                star = Some((behind, from + 1));
                (at, next) = (behind + 1, from + 1);
            }
        }
    }
    pattern[at..].iter().all(|symbol| *symbol == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_without_regard_to_case() {
        for (pattern, name) in [
            ("*KEY*", "my_key"),
            ("lang", "LANG"),
            ("kit_?ase", "KIT_BASE"),
            ("*", ""),
            ("a*b*c", "axxbyybzzc"),
            ("**", "x"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("KEY", "KEYS"), ("?", ""), ("a*b", "ab_"), ("", "a"), ("a?", "a")]
        {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        let stars = "*a".repeat(50);
        assert!(!matches(&stars, &"a".repeat(49)));
    }

    fn names(policy: Option<&EnvPolicy>, requested: &[&str]) -> Vec<String> {
        let own = ["PATH", "A_TOKEN", "OTHER", "CODEX_EXEC_SERVER_URL", "NODE_REPL_AUTH_TOKEN"];
        let own = own.map(|name| (name.into(), "own".into())).into_iter().collect();
        let requested = requested.iter().map(|name| ((*name).to_owned(), "r".to_owned()));
        let edits = variables(policy, &own, requested.collect());
        let name = |edit: EnvEdit| match edit {
            EnvEdit::Set(name, _) => name.into_string().unwrap(),
            EnvEdit::Unset(_) => panic!("an empty environment has nothing to unset"),
        };
        edits.into_iter().map(name).collect()
    }

    #[test]
    fn without_a_policy_it_is_what_the_request_says() {
        assert_eq!(names(None, &["B", "A"]), ["A", "B"]);
        assert_eq!(names(None, &["codex_exec_server_url", "A"]), ["A"], "hidden in any case");
    }

    #[test]
    fn a_policy_is_applied_and_the_request_comes_on_top() {
        let policy = |inherit, keep| EnvPolicy {
            inherit,
            ignore_default_excludes: keep,
            exclude: vec!["oth*".into()],
            set: [("SET".into(), "1".into())].into(),
            include_only: Vec::new(),
        };
        assert_eq!(names(Some(&policy(Inherit::All, false)), &["X"]), ["PATH", "SET", "X"]);
        assert_eq!(names(Some(&policy(Inherit::All, true)), &[]), ["A_TOKEN", "PATH", "SET"]);
        assert_eq!(names(Some(&policy(Inherit::Core, true)), &[]), ["PATH", "SET"]);
        let only = EnvPolicy { include_only: vec!["s?t".into()], ..policy(Inherit::None, true) };
        assert_eq!(names(Some(&only), &["X"]), ["SET", "X"]);
    }
}
