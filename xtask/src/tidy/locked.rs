//! The packages in Cargo.lock stay few.

use super::workspace::{Violation, Workspace};

const FEWER_THAN: usize = 200;

pub(super) fn are_few(workspace: &Workspace) -> Vec<Violation> {
    let lock = workspace.texts.get("Cargo.lock").map(String::as_str).unwrap_or_default();
    let count = lock.lines().filter(|line| *line == "[[package]]").count();
    if count < FEWER_THAN {
        return Vec::new();
    }
    let what = format!(
        "{count} locked packages, fewer than {FEWER_THAN} are wanted: `cargo tree` shows who \
         brings them"
    );
    vec![Violation::new("Cargo.lock", 1, what)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_packages_are_found() {
        let workspace = |count| Workspace::of(&[("Cargo.lock", &"[[package]]\n".repeat(count))]);
        assert_eq!(are_few(&workspace(199)).len(), 0);
        assert_eq!(are_few(&workspace(200)).len(), 1);
    }
}
