//! Checks of Rust files: their names, their length and what they must not contain.

use super::code::{code_of, is_of_a_word};
use super::workspace::{Violation, Workspace};

const VAGUE_NAMES: [&str; 4] = ["utils.rs", "helpers.rs", "common.rs", "manager.rs"];
const MAX_CONTENTS_LINES: usize = 60;
const MARKERS: [(&str, &str); 5] = [
    ("#[ignore", "a test that does not run: repair it or delete it"),
    ("#[should_panic", "a test of a panic: return an error and compare it"),
    ("todo!(", "unfinished code: finish it or leave it out"),
    ("unimplemented!(", "unfinished code: finish it or leave it out"),
    ("dbg!(", "a leftover trace: delete it"),
];

/// A file is named after its contents.
pub(super) fn have_clear_names(workspace: &Workspace) -> Vec<Violation> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let vague = workspace.paths.iter().filter(|path| VAGUE_NAMES.contains(&name(path).as_str()));
    let what = "a vague name: name the file after its contents";
    vague.map(|path| Violation::new(path, 1, what)).collect()
}

/// No code is left for later, and no test is switched off.
pub(super) fn have_no_markers(workspace: &Workspace) -> Vec<Violation> {
    let find = |_: &str, line: &str| {
        MARKERS.iter().filter(|(marker, _)| line.contains(marker)).map(|(_, what)| *what).collect()
    };
    violations_in_code(workspace, find)
}

/// `unsafe` is used only in `sys`.
pub(super) fn use_unsafe_only_in_sys(workspace: &Workspace) -> Vec<Violation> {
    violations_in_code(workspace, |path, line| {
        let mut words = line.split(|character| !is_of_a_word(character));
        let found = !path.starts_with("crates/sys/") && words.any(|word| word == "unsafe");
        let what = "`unsafe` outside crates/sys: add a safe function to sys";
        found.then_some(what).into_iter().collect()
    })
}

/// `lib.rs` and `mod.rs` are tables of contents.
pub(super) fn have_short_contents(workspace: &Workspace) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in workspace.texts_ending(".rs") {
        let lines = code_of(text).lines().filter(|line| !line.trim().is_empty()).count();
        let is_contents = matches!(path.rsplit('/').next(), Some("lib.rs" | "mod.rs"));
        if is_contents && lines > MAX_CONTENTS_LINES {
            let what = format!(
                "{lines} lines of code in a table of contents (max {MAX_CONTENTS_LINES}): move \
                 them to files named after their contents"
            );
            violations.push(Violation::new(path, 1, what));
        }
    }
    violations
}

/// Passes the path and each line of code to `find`, which returns what is wrong with it.
fn violations_in_code(
    workspace: &Workspace,
    find: impl Fn(&str, &str) -> Vec<&'static str>,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in workspace.texts_ending(".rs") {
        for (index, line) in code_of(text).lines().enumerate() {
            let found = find(path, line).into_iter();
            violations.extend(found.map(|what| Violation::new(path, index + 1, what)));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_markers(text: &str, lines: &[usize]) {
        let found = have_no_markers(&Workspace::of(&[("crates/engine/src/a.rs", text)]));
        assert_eq!(found.iter().map(|violation| violation.line).collect::<Vec<_>>(), lines);
    }

    fn check_contents(path: &str, text: &str, violations: usize) {
        assert_eq!(
            have_short_contents(&Workspace::of(&[(path, text)])).len(),
            violations,
            "{path}"
        );
    }

    #[test]
    fn a_vague_name_is_found() {
        let workspace =
            Workspace::of(&[("crates/sys/src/utils.rs", ""), ("crates/sys/src/pipe.rs", "")]);
        let found = have_clear_names(&workspace);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "crates/sys/src/utils.rs");
    }

    #[test]
    fn each_marker_is_found_in_code() {
        for (marker, _) in MARKERS {
            check_markers(&format!("fn f() {{\n {marker}"), &[2]);
        }
    }

    #[test]
    fn a_marker_in_a_comment_or_a_string_is_ignored() {
        check_markers("// todo!()\nlet a = \"#[ignore]\";", &[]);
    }

    #[test]
    fn an_unsafe_block_is_found_outside_sys_only() {
        let text = "#![deny(unsafe_code)]\n// unsafe\nfn f() { unsafe {} }\n";
        let workspace =
            Workspace::of(&[("crates/engine/src/a.rs", text), ("crates/sys/src/a.rs", text)]);
        let found = use_unsafe_only_in_sys(&workspace);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/engine/src/a.rs", 3));
    }

    #[test]
    fn a_long_table_of_contents_is_found() {
        check_contents("crates/sys/src/lib.rs", &"mod a;\n".repeat(60), 0);
        check_contents("crates/sys/src/lib.rs", &"mod a;\n".repeat(61), 1);
        check_contents("crates/sys/src/pty/mod.rs", &"mod a;\n".repeat(61), 1);
        check_contents("crates/sys/src/pty.rs", &"mod a;\n".repeat(61), 0);
    }

    #[test]
    fn the_documentation_of_a_table_of_contents_may_be_long() {
        check_contents("crates/sys/src/lib.rs", &"//! Words.\n\n".repeat(100), 0);
    }
}
