//! The version of the workspace is in the root manifest. Files that must repeat it agree with it.

use super::workspace::{Violation, Workspace};

/// Files for npm, each with how many times it has the version of the package.
const REPEATED: [(&str, usize); 2] =
    [("sdk/typescript/package.json", 1), ("sdk/typescript/package-lock.json", 2)];
const KEY: &str = "\"version\": ";

pub(super) fn agree(workspace: &Workspace) -> Vec<Violation> {
    let Some(version) = declared(workspace) else {
        let what = "no version in [workspace.package]: add it";
        return vec![Violation::new("Cargo.toml", 1, what)];
    };
    let mut violations = of_our_crates(workspace, version);
    violations.extend(REPEATED.iter().flat_map(|(path, times)| {
        let found = in_json(workspace, path).take(*times);
        let other = found.filter(|(_, found)| *found != version);
        other.map(|(line, found)| disagrees(path, line, found, version)).collect::<Vec<_>>()
    }));
    let heading = format!("## [{version}]");
    let changes = workspace.texts.get("CHANGELOG.md").map(String::as_str).unwrap_or_default();
    if !changes.lines().any(|line| line.starts_with(&heading)) {
        let what = format!("no changes of version {version}: add the heading `{heading} - DATE`");
        violations.push(Violation::new("CHANGELOG.md", 1, what));
    }
    violations
}

/// The version in the root manifest.
fn declared(workspace: &Workspace) -> Option<&str> {
    let lines = workspace.texts.get("Cargo.toml")?.lines();
    let package = lines.skip_while(|line| *line != "[workspace.package]").skip(1);
    let mut keys = package.take_while(|line| !line.starts_with('['));
    Some(keys.find_map(|line| line.strip_prefix("version = "))?.trim_matches('"'))
}

/// Our own crates as dependencies, whose version is needed to publish them.
fn of_our_crates(workspace: &Workspace, version: &str) -> Vec<Violation> {
    let manifest = workspace.texts.get("Cargo.toml").map(String::as_str).unwrap_or_default();
    let lines = manifest.lines().enumerate().filter(|(_, line)| line.contains("path = \"crates/"));
    let versions = lines.filter_map(|(index, line)| {
        let found = line.split_once("version = \"")?.1.split('"').next()?;
        Some((index + 1, found))
    });
    let other = versions.filter(|(_, found)| *found != version);
    other.map(|(line, found)| disagrees("Cargo.toml", line, found, version)).collect()
}

/// The versions in a JSON file, in their order, with their line numbers.
fn in_json<'a>(
    workspace: &'a Workspace,
    path: &str,
) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    let text = workspace.texts.get(path).map(String::as_str).unwrap_or_default();
    text.lines().enumerate().filter_map(|(index, line)| {
        let value = line.trim().strip_prefix(KEY)?;
        Some((index + 1, value.trim_end_matches(',').trim_matches('"')))
    })
}

fn disagrees(path: &str, line: usize, found: &str, version: &str) -> Violation {
    Violation::new(path, line, format!("version {found}: the workspace has {version}; write that"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(npm: &str, dependency: &str, heading: &str, paths: &[&str]) {
        let manifest = format!(
            "[workspace.package]\nversion = \"1.2.0\"\n[workspace.dependencies]\n\
             a = {{ path = \"crates/a\", version = \"{dependency}\" }}\nb = \"7\"\n"
        );
        let package = format!("{{\n  \"version\": \"{npm}\",\n  \"type\": \"module\"\n}}");
        let lock = "{\n  \"version\": \"1.2.0\",\n\"\": {\"version\": \"1.2.0\"\n}, \"version\": 3";
        let found = agree(&Workspace::of(&[
            ("Cargo.toml", &manifest),
            ("sdk/typescript/package.json", &package),
            ("sdk/typescript/package-lock.json", lock),
            ("CHANGELOG.md", heading),
        ]));
        let found: Vec<&str> = found.iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(found, paths);
    }

    #[test]
    fn one_version_everywhere_is_fine() {
        check("1.2.0", "1.2.0", "## [1.2.0] - 2026-01-01", &[]);
    }

    #[test]
    fn another_version_is_found() {
        check("1.1.0", "1.2.0", "## [1.2.0]", &["sdk/typescript/package.json"]);
        check("1.2.0", "1.1.0", "## [1.2.0]", &["Cargo.toml"]);
        check("1.2.0", "1.2.0", "## [Unreleased]", &["CHANGELOG.md"]);
    }
}
