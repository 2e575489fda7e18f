//! `unsafe` is written in `sys` alone.

use super::code::{code_of, is_of_a_word};
use super::workspace::{Violation, Workspace};

pub(super) fn is_in_sys_alone(workspace: &Workspace) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in workspace.texts_ending(".rs") {
        if path.starts_with("crates/sys/") {
            continue;
        }
        for (index, line) in code_of(text).lines().enumerate() {
            if line.split(|character| !is_of_a_word(character)).any(|word| word == "unsafe") {
                let what = "`unsafe` outside crates/sys: give sys a safe function for it";
                violations.push(Violation::new(path, index + 1, what));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsafe_block_is_found_outside_sys_only() {
        let text = "#![deny(unsafe_code)]\n// unsafe\nfn f() { unsafe {} }\n";
        let workspace =
            Workspace::of(&[("crates/engine/src/a.rs", text), ("crates/sys/src/a.rs", text)]);
        let found = is_in_sys_alone(&workspace);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/engine/src/a.rs", 3));
    }
}
