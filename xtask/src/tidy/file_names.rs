//! A file is named after what is inside.

use super::workspace::{Violation, Workspace};

const SAYS_NOTHING: [&str; 4] = ["utils.rs", "helpers.rs", "common.rs", "manager.rs"];

pub(super) fn say_what_is_inside(workspace: &Workspace) -> Vec<Violation> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let nameless =
        workspace.paths.iter().filter(|path| SAYS_NOTHING.contains(&name(path).as_str()));
    let what = "a name that says nothing: name the file after the thing in it";
    nameless.map(|path| Violation::new(path, 1, what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_says_nothing_is_found() {
        let workspace =
            Workspace::of(&[("crates/sys/src/utils.rs", ""), ("crates/sys/src/pipe.rs", "")]);
        let found = say_what_is_inside(&workspace);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "crates/sys/src/utils.rs");
    }
}
