//! `lib.rs` and `mod.rs` are tables of contents.

use super::code::code_of;
use super::workspace::{Violation, Workspace};

const MOST_LINES: usize = 60;

pub(super) fn are_short(workspace: &Workspace) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in workspace.texts_ending(".rs") {
        if !matches!(path.rsplit('/').next(), Some("lib.rs" | "mod.rs")) {
            continue;
        }
        let lines = code_of(text).lines().filter(|line| !line.trim().is_empty()).count();
        if lines > MOST_LINES {
            let what = format!(
                "{lines} lines of code in a table of contents, {MOST_LINES} at most: move them to \
                 a file named after what they are"
            );
            violations.push(Violation::new(path, 1, what));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, violations: usize) {
        assert_eq!(are_short(&Workspace::of(&[(path, text)])).len(), violations, "{path}");
    }

    #[test]
    fn a_long_table_of_contents_is_found() {
        check("crates/sys/src/lib.rs", &"mod a;\n".repeat(60), 0);
        check("crates/sys/src/lib.rs", &"mod a;\n".repeat(61), 1);
        check("crates/sys/src/pty/mod.rs", &"mod a;\n".repeat(61), 1);
        check("crates/sys/src/pty.rs", &"mod a;\n".repeat(61), 0);
    }

    #[test]
    fn its_documentation_may_be_long() {
        check("crates/sys/src/lib.rs", &"//! Words.\n\n".repeat(100), 0);
    }
}
