//! Decision records are numbered without gaps and listed in ARCHITECTURE.md.

use super::workspace::{Violation, Workspace};

const FOLDER: &str = "docs/adr/";
const LIST: &str = "ARCHITECTURE.md";

pub(super) fn numbered_and_listed(workspace: &Workspace) -> Vec<Violation> {
    let list = workspace.texts.get(LIST).map(String::as_str).unwrap_or_default();
    let mut violations = Vec::new();
    let decisions = workspace.texts_ending(".md").filter(|(path, _)| path.starts_with(FOLDER));
    // The texts are sorted by path, and so by number.
    for ((path, _), number) in decisions.zip(1..) {
        let begin = format!("{FOLDER}{number:04}-");
        if !path.starts_with(&begin) {
            let what = format!("the name must begin with {begin}: renumber it");
            violations.push(Violation::new(path, 1, what));
        }
        if !list.contains(path) {
            violations.push(Violation::new(path, 1, format!("not listed: link to it in {LIST}")));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(decisions: &[&str], list: &str, violations: &[&str]) {
        let mut files = vec![(LIST, list)];
        files.extend(decisions.iter().map(|path| (*path, "")));
        let found = numbered_and_listed(&Workspace::of(&files));
        assert_eq!(found.iter().map(|v| v.path.as_str()).collect::<Vec<_>>(), violations);
    }

    #[test]
    fn a_gap_and_a_number_used_twice_are_found() {
        let list = "docs/adr/0001-a.md docs/adr/0001-b.md docs/adr/0002-b.md docs/adr/0003-c.md";
        check(&["docs/adr/0001-a.md", "docs/adr/0002-b.md"], list, &[]);
        check(&["docs/adr/0001-a.md", "docs/adr/0003-c.md"], list, &["docs/adr/0003-c.md"]);
        check(&["docs/adr/0001-a.md", "docs/adr/0001-b.md"], list, &["docs/adr/0001-b.md"]);
    }

    #[test]
    fn an_unlisted_decision_is_found() {
        check(&["docs/adr/0001-a.md"], "nothing", &["docs/adr/0001-a.md"]);
    }
}
