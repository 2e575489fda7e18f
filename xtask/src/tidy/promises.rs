//! The tests and commands that docs/promises.md names exist.

use super::workspace::{Violation, Workspace};

const DOCUMENT: &str = "docs/promises.md";
const COMMANDS: &str = "xtask/src/main.rs";

pub(super) fn name_what_exists(workspace: &Workspace) -> Vec<Violation> {
    let Some(text) = workspace.texts.get(DOCUMENT) else { return Vec::new() };
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for code in line.split('`').skip(1).step_by(2) {
            if let Some(what) = missing(workspace, code) {
                violations.push(Violation::new(DOCUMENT, index + 1, what));
            }
        }
    }
    violations
}

fn missing(workspace: &Workspace, code: &str) -> Option<String> {
    let has =
        |path: &str, text: &str| workspace.texts.get(path).is_some_and(|it| it.contains(text));
    if let Some(command) = code.strip_prefix("cargo xtask ") {
        let task = command.split(' ').next().unwrap_or_default();
        let exists = has(COMMANDS, &format!("(\"{task}\", "));
        return (!exists).then(|| format!("there is no task {task}: name one that xtask has"));
    }
    let definition = format!("fn {code}(");
    let exists = || workspace.texts_ending(".rs").any(|(_, text)| text.contains(&definition));
    (is_test(code) && !exists()).then(|| format!("there is no test {code}: name one that there is"))
}

/// The name of a test is a sentence.
fn is_test(code: &str) -> bool {
    let is_word =
        |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    code.matches('_').count() > 1 && code.split('_').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(document: &str, lines: &[usize]) {
        let files = [
            (DOCUMENT, document),
            ("crates/a/tests/b.rs", "fn an_ended_process_has_its_output() {"),
            (COMMANDS, "(\"soak\", options) => soak::run(options),"),
        ];
        let found = name_what_exists(&Workspace::of(&files));
        assert_eq!(found.iter().map(|one| one.line).collect::<Vec<_>>(), lines, "{document}");
    }

    #[test]
    fn what_there_is_may_be_named() {
        check("`an_ended_process_has_its_output`, `cargo xtask soak --minutes 9`, `./test`", &[]);
    }

    #[test]
    fn a_renamed_test_and_a_removed_task_are_found() {
        check("\n`an_ended_process_has_its_outputs`", &[2]);
        check("`cargo xtask soa`\n`cargo xtask soak`", &[1]);
    }
}
