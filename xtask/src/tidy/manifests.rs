//! Checks of the manifests and Cargo.lock.

use super::workspace::{Violation, Workspace};

const SHARED: [&str; 6] = ["version", "edition", "rust-version", "license", "readme", "exclude"];
/// Without the feature `fleet` it is fewer than 200: the broker brings 65.
const FEWER_THAN: usize = 260;
/// It has the version of the crate that it stands in for.
const STANDS_IN: &str = "crates/nkeys/Cargo.toml";

/// Versions and other shared values are only in the root manifest.
pub(super) fn inherit_shared_values(workspace: &Workspace) -> Vec<Violation> {
    let manifests = workspace.texts_ending("/Cargo.toml");
    manifests.flat_map(|(path, text)| check_manifest(path, text)).collect()
}

fn check_manifest(path: &str, text: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut section = "";
    for (index, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').trim_matches('[');
            if section.contains("dependencies.") {
                let what = "a dependency with its own section: write `name.workspace = true`";
                violations.push(Violation::new(path, index + 1, what));
            }
        } else if path != STANDS_IN && has_own_value(section, line) {
            let what = "a value of one crate: move it to the root Cargo.toml and write \
                        `workspace = true` here";
            violations.push(Violation::new(path, index + 1, what));
        }
    }
    violations
}

fn has_own_value(section: &str, line: &str) -> bool {
    let Some((key, value)) = line.split_once('=') else { return false };
    let key = key.trim();
    let is_shared = match section {
        "package" => SHARED.iter().any(|shared| key.split('.').next() == Some(shared)),
        _ => section.ends_with("dependencies") && !line.starts_with('#'),
    };
    let inherits = key.ends_with(".workspace") || value.contains("workspace = true");
    is_shared && !inherits
}

/// Every crate inherits the lints of the workspace.
pub(super) fn inherit_lints(workspace: &Workspace) -> Vec<Violation> {
    let manifests = workspace.texts_ending("/Cargo.toml");
    let without = manifests.filter(|(_, text)| !has_workspace_lints(text));
    let what = "no workspace lints: add `[lints]` with `workspace = true`";
    without.map(|(path, _)| Violation::new(path, 1, what)).collect()
}

fn has_workspace_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().skip_while(|line| *line != "[lints]").skip(1);
    lines.next() == Some("workspace = true")
}

/// Cargo.lock stays small.
pub(super) fn lock_few_packages(workspace: &Workspace) -> Vec<Violation> {
    let lock = workspace.texts.get("Cargo.lock").map(String::as_str).unwrap_or_default();
    let count = lock.lines().filter(|line| *line == "[[package]]").count();
    if count < FEWER_THAN {
        return Vec::new();
    }
    let what = format!(
        "{count} locked packages, must be fewer than {FEWER_THAN}: `cargo tree` shows where \
         they come from"
    );
    vec![Violation::new("Cargo.lock", 1, what)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_shared(manifest: &str, lines: &[usize]) {
        let found = inherit_shared_values(&Workspace::of(&[("crates/sys/Cargo.toml", manifest)]));
        assert_eq!(found.iter().map(|violation| violation.line).collect::<Vec<_>>(), lines);
    }

    #[test]
    fn an_inherited_value_is_fine() {
        check_shared(
            "[package]\nname = \"a\"\nversion.workspace = true\n\n[dependencies]\n\
             libc.workspace = true\ntokio = { workspace = true, features = [\"fs\"] }\n",
            &[],
        );
    }

    #[test]
    fn a_version_in_a_crate_is_found() {
        check_shared("[package]\nversion = \"1.0.0\"\n", &[2]);
        check_shared("[dependencies]\nlibc = \"0.2\"\n", &[2]);
        check_shared("[dev-dependencies]\nlibc = { version = \"0.2\" }\n", &[2]);
        check_shared("[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n", &[2]);
        check_shared("[dependencies.libc]\nversion = \"0.2\"\n", &[1]);
    }

    #[test]
    fn the_root_manifest_may_have_versions() {
        let workspace =
            Workspace::of(&[("Cargo.toml", "[workspace.dependencies]\nlibc = \"0.2\"\n")]);
        assert_eq!(inherit_shared_values(&workspace), []);
    }

    fn check_lints(manifest: &str, violations: usize) {
        let workspace = Workspace::of(&[("crates/sys/Cargo.toml", manifest), ("Cargo.toml", "")]);
        assert_eq!(inherit_lints(&workspace).len(), violations);
    }

    #[test]
    fn a_crate_without_the_lints_is_found() {
        check_lints("[lints]\nworkspace = true\n", 0);
        check_lints("[package]\nname = \"a\"\n", 1);
        check_lints("[lints]\n[lints.rust]\n", 1);
    }

    #[test]
    fn too_many_packages_are_found() {
        let workspace = |count| Workspace::of(&[("Cargo.lock", &"[[package]]\n".repeat(count))]);
        assert_eq!(lock_few_packages(&workspace(259)).len(), 0);
        assert_eq!(lock_few_packages(&workspace(260)).len(), 1);
    }
}
