//! Every crate takes the lints of the workspace.

use super::workspace::{Violation, Workspace};

pub(super) fn are_the_workspaces(workspace: &Workspace) -> Vec<Violation> {
    let manifests = workspace.texts_ending("/Cargo.toml");
    let without = manifests.filter(|(_, text)| !inherits_lints(text));
    let what = "a crate without the workspace's lints: add `[lints]` with `workspace = true`";
    without.map(|(path, _)| Violation::new(path, 1, what)).collect()
}

fn inherits_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().skip_while(|line| *line != "[lints]").skip(1);
    lines.next() == Some("workspace = true")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(manifest: &str, violations: usize) {
        let workspace = Workspace::of(&[("crates/sys/Cargo.toml", manifest), ("Cargo.toml", "")]);
        assert_eq!(are_the_workspaces(&workspace).len(), violations);
    }

    #[test]
    fn a_crate_without_the_lints_is_found() {
        check("[lints]\nworkspace = true\n", 0);
        check("[package]\nname = \"a\"\n", 1);
        check("[lints]\n[lints.rust]\n", 1);
    }
}
