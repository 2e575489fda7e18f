//! Nothing is left for later in code, and no test is switched off.

use super::code::code_of;
use super::workspace::{Violation, Workspace};

const MARKERS: [(&str, &str); 5] = [
    ("#[ignore", "a test that does not run: repair it or delete it"),
    ("#[should_panic", "a test of a panic: return an error and compare it"),
    ("todo!(", "an unfinished place: finish it or leave it out"),
    ("unimplemented!(", "an unfinished place: finish it or leave it out"),
    ("dbg!(", "a trace left behind: delete it"),
];

pub(super) fn are_absent(workspace: &Workspace) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in workspace.texts_ending(".rs") {
        for (index, line) in code_of(text).lines().enumerate() {
            for (_, what) in MARKERS.iter().filter(|(marker, _)| line.contains(marker)) {
                violations.push(Violation::new(path, index + 1, *what));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, lines: &[usize]) {
        let found = are_absent(&Workspace::of(&[("crates/engine/src/a.rs", text)]));
        assert_eq!(found.iter().map(|violation| violation.line).collect::<Vec<_>>(), lines);
    }

    #[test]
    fn each_marker_is_found_in_code() {
        for (marker, _) in MARKERS {
            check(&format!("fn f() {{\n {marker}"), &[2]);
        }
    }

    #[test]
    fn a_marker_in_a_comment_or_a_string_is_none() {
        check("// todo!()\nlet a = \"#[ignore]\";", &[]);
    }
}
