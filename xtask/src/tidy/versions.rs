//! Versions, and all else that crates have in common, stand in the workspace's manifest alone.

use super::workspace::{Violation, Workspace};

const SHARED: [&str; 5] = ["version", "edition", "rust-version", "license", "publish"];

pub(super) fn stand_in_one_place(workspace: &Workspace) -> Vec<Violation> {
    let manifests = workspace.texts_ending("/Cargo.toml");
    manifests.flat_map(|(path, text)| of_manifest(path, text)).collect()
}

fn of_manifest(path: &str, text: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut section = "";
    for (index, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').trim_matches('[');
            if section.contains("dependencies.") {
                let what =
                    "a dependency in a section of its own: write it as `name.workspace = true`";
                violations.push(Violation::new(path, index + 1, what));
            }
        } else if is_of_its_own(section, line) {
            let what = "a value of the crate's own: put it into the root Cargo.toml and write \
                        `workspace = true` here";
            violations.push(Violation::new(path, index + 1, what));
        }
    }
    violations
}

fn is_of_its_own(section: &str, line: &str) -> bool {
    let Some((key, value)) = line.split_once('=') else { return false };
    let key = key.trim();
    let is_shared = match section {
        "package" => SHARED.iter().any(|shared| key.split('.').next() == Some(shared)),
        _ => section.ends_with("dependencies") && !line.starts_with('#'),
    };
    let inherits = key.ends_with(".workspace") || value.contains("workspace = true");
    is_shared && !inherits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(manifest: &str, lines: &[usize]) {
        let found = stand_in_one_place(&Workspace::of(&[("crates/sys/Cargo.toml", manifest)]));
        assert_eq!(found.iter().map(|violation| violation.line).collect::<Vec<_>>(), lines);
    }

    #[test]
    fn an_inherited_value_is_fine() {
        check(
            "[package]\nname = \"a\"\nversion.workspace = true\n\n[dependencies]\n\
             libc.workspace = true\ntokio = { workspace = true, features = [\"fs\"] }\n",
            &[],
        );
    }

    #[test]
    fn a_version_in_a_crate_is_found() {
        check("[package]\nversion = \"1.0.0\"\n", &[2]);
        check("[dependencies]\nlibc = \"0.2\"\n", &[2]);
        check("[dev-dependencies]\nlibc = { version = \"0.2\" }\n", &[2]);
        check("[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n", &[2]);
        check("[dependencies.libc]\nversion = \"0.2\"\n", &[1]);
    }

    #[test]
    fn the_root_is_where_versions_stand() {
        let workspace =
            Workspace::of(&[("Cargo.toml", "[workspace.dependencies]\nlibc = \"0.2\"\n")]);
        assert_eq!(stand_in_one_place(&workspace), []);
    }
}
