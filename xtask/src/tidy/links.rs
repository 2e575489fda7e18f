//! Relative links in documents resolve.

use super::workspace::{Violation, Workspace};

pub(super) fn resolve(workspace: &Workspace) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in workspace.texts_ending(".md") {
        for (line, target) in links(text) {
            if !resolves(workspace, path, target) {
                let what = format!("broken link to {target}: correct it");
                violations.push(Violation::new(path, line, what));
            }
        }
    }
    violations
}

fn resolves(workspace: &Workspace, document: &str, target: &str) -> bool {
    let target = target.split('#').next().unwrap_or_default();
    let is_external = target.contains("://") || target.starts_with("mailto:");
    if is_external || target.is_empty() {
        return true;
    }
    let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
    joined(folder, target).is_some_and(|path| path.is_empty() || workspace.paths.contains(&path))
}

/// `target` relative to `folder`; `None` if it leaves the root.
fn joined(folder: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The targets of `[text](target)` outside of code, with their line numbers.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    let prose = text.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !fence && !in_code
    });
    prose.flat_map(|(index, line)| {
        let outside_code = line.split('`').step_by(2);
        let targets = outside_code
            .flat_map(|piece| piece.split("](").skip(1))
            .filter_map(|rest| Some(rest.split_once(')')?.0));
        targets.map(move |target| (index + 1, target))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, lines: &[usize]) {
        let files = [("docs/a.md", text), ("docs/adr/0001-b.md", ""), ("README.md", "")];
        let found = resolve(&Workspace::of(&files));
        assert_eq!(
            found.iter().map(|violation| violation.line).collect::<Vec<_>>(),
            lines,
            "{text}"
        );
    }

    #[test]
    fn a_link_to_a_file_or_a_folder_is_fine() {
        check("[b](adr/0001-b.md#part) and [c](../README.md), [d](adr/) [e](#here)", &[]);
        check("[`b`](adr/0001-b.md) [far](https://example.org/x.md)", &[]);
    }

    #[test]
    fn a_broken_link_is_found() {
        check("a\n[b](adr/0002-b.md) [c](../README.md)", &[2]);
        check("[`b`](0001-b.md)", &[1]);
        check("[b](../../README.md)", &[1]);
    }

    #[test]
    fn code_is_not_a_link() {
        check("```\n[b](nowhere)\n```\n`[c](nowhere)`\n[d](nowhere)", &[5]);
    }
}
