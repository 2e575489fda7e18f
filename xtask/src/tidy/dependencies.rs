//! Every foreign dependency is used, and its reason is in docs/dependencies.md.

use std::collections::BTreeMap;

use super::workspace::{Violation, Workspace};

const REASONS: &str = "docs/dependencies.md";

/// The manifest and the document list the same dependencies.
pub(super) fn each_has_a_reason(workspace: &Workspace) -> Vec<Violation> {
    let declared = declared(workspace);
    let explained = explained(workspace);
    let without =
        declared.iter().filter(|(name, _)| !explained.contains_key(*name)).map(|(name, line)| {
            let what =
                format!("{name} has no line in {REASONS}: say what, why and what it pulls in");
            Violation::new("Cargo.toml", *line, what)
        });
    let stale =
        explained.iter().filter(|(name, _)| !declared.contains_key(*name)).map(|(name, line)| {
            let what = format!("{name} is not a dependency of the workspace: delete the line");
            Violation::new(REASONS, *line, what)
        });
    without.chain(stale).collect()
}

/// Every dependency of the workspace is used by a crate.
pub(super) fn each_is_used(workspace: &Workspace) -> Vec<Violation> {
    let used = |name: &str| {
        let mut dependencies = workspace.crates.iter().flat_map(|member| &member.dependencies);
        dependencies.any(|dependency| dependency.name == name)
    };
    let declared = declared(workspace);
    let unused = declared.iter().filter(|(name, _)| !used(name));
    unused
        .map(|(name, line)| {
            Violation::new("Cargo.toml", *line, format!("no crate uses {name}: delete the line"))
        })
        .collect()
}

/// The foreign dependencies in the root manifest, with their line numbers.
fn declared(workspace: &Workspace) -> BTreeMap<&str, usize> {
    let manifest = workspace.texts.get("Cargo.toml").map(String::as_str).unwrap_or_default();
    let lines = manifest.lines().enumerate();
    let section = lines
        .skip_while(|(_, line)| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|(_, line)| !line.starts_with('['));
    section
        .filter(|(_, line)| !line.starts_with('#') && !line.contains("path ="))
        .filter_map(|(index, line)| Some((line.split_once('=')?.0.trim(), index + 1)))
        .collect()
}

/// The dependencies that the document explains ("- `name`: why"), with their line numbers.
fn explained(workspace: &Workspace) -> BTreeMap<&str, usize> {
    let document = workspace.texts.get(REASONS).map(String::as_str).unwrap_or_default();
    document
        .lines()
        .enumerate()
        .filter_map(|(index, line)| Some((line.strip_prefix("- `")?.split_once('`')?.0, index + 1)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::workspace::Purpose;
    use super::*;

    const MANIFEST: &str = "[workspace.dependencies]\nlastbyte-sys = { path = \"crates/sys\" }\n\
                            libc = \"0.2\"\n# Why.\nregex = \"1\"\n\n[profile.dev]\ndebug = 1\n";

    fn paths(violations: &[Violation]) -> Vec<(&str, usize)> {
        violations.iter().map(|violation| (violation.path.as_str(), violation.line)).collect()
    }

    #[test]
    fn a_missing_and_a_stale_reason_are_found() {
        let document = "# Dependencies\n\n- `regex`: searches.\n- `tokio`: waits.\n";
        let workspace = Workspace::of(&[("Cargo.toml", MANIFEST), (REASONS, document)]);
        let found = each_has_a_reason(&workspace);
        assert_eq!(paths(&found), [("Cargo.toml", 3), (REASONS, 4)]);
    }

    #[test]
    fn an_unused_dependency_is_found() {
        let workspace = Workspace::of(&[("Cargo.toml", MANIFEST)])
            .with_crate("lastbyte-sys", &[("libc", Purpose::Crate)]);
        assert_eq!(paths(&each_is_used(&workspace)), [("Cargo.toml", 5)]);
    }
}
