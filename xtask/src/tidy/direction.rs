//! Dependencies of our crates on each other point one way.

use super::workspace::{Crate, Dependency, Purpose, Violation, Workspace};

/// Who may use whom. The tests of all may also use `lastbyte-testkit`.
const MAY_USE: [(&str, &[&str]); 9] = [
    (
        "lastbyte-cli",
        &[
            "lastbyte-client",
            "lastbyte-engine",
            "lastbyte-output",
            "lastbyte-server",
            "lastbyte-sys",
            "lastbyte-wire",
        ],
    ),
    ("lastbyte-client", &["lastbyte-wire"]),
    ("lastbyte-server", &["lastbyte-engine", "lastbyte-output", "lastbyte-sys", "lastbyte-wire"]),
    ("lastbyte-wire", &[]),
    ("lastbyte-engine", &["lastbyte-output", "lastbyte-sys"]),
    ("lastbyte-output", &["lastbyte-sys"]),
    ("lastbyte-sys", &[]),
    ("lastbyte-testkit", &[]),
    (
        "xtask",
        &[
            "lastbyte-client",
            "lastbyte-engine",
            "lastbyte-output",
            "lastbyte-server",
            "lastbyte-sys",
            "lastbyte-testkit",
            "lastbyte-wire",
        ],
    ),
];

pub(super) fn one_way(workspace: &Workspace) -> Vec<Violation> {
    workspace.crates.iter().flat_map(|member| of_crate(workspace, member)).collect()
}

fn of_crate(workspace: &Workspace, member: &Crate) -> Vec<Violation> {
    let Some((_, may_use)) = MAY_USE.iter().find(|(name, _)| *name == member.name) else {
        let what =
            "a crate whose place is unknown: say in xtask/src/tidy/direction.rs whom it may use";
        return vec![Violation::new(&member.manifest, 1, what)];
    };
    let ours = |dependency: &&Dependency| {
        workspace.crates.iter().any(|other| other.name == dependency.name)
    };
    let allowed = |dependency: &Dependency| {
        may_use.contains(&dependency.name.as_str())
            || dependency.purpose == Purpose::Tests && dependency.name == "lastbyte-testkit"
    };
    let wrong = member.dependencies.iter().filter(ours).filter(|dependency| !allowed(dependency));
    wrong
        .map(|dependency| {
            let line = workspace.line_of(&member.manifest, &dependency.name);
            let what = format!(
                "{} may not use {}: move the code to where both may reach it",
                member.name, dependency.name
            );
            Violation::new(&member.manifest, line, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, dependency: &str, purpose: Purpose, violations: usize) {
        let workspace = Workspace::default()
            .with_crate(name, &[(dependency, purpose), ("libc", Purpose::Crate)])
            .with_crate(dependency, &[]);
        assert_eq!(one_way(&workspace).len(), violations, "{name} uses {dependency}");
    }

    #[test]
    fn an_arrow_down_is_fine_and_an_arrow_up_is_not() {
        check("lastbyte-engine", "lastbyte-sys", Purpose::Crate, 0);
        check("lastbyte-sys", "lastbyte-engine", Purpose::Crate, 1);
        check("lastbyte-engine", "lastbyte-wire", Purpose::Crate, 1);
        check("lastbyte-output", "lastbyte-engine", Purpose::Tests, 1);
    }

    #[test]
    fn testkit_is_for_tests_only() {
        check("lastbyte-sys", "lastbyte-testkit", Purpose::Tests, 0);
        check("lastbyte-sys", "lastbyte-testkit", Purpose::Crate, 1);
    }

    #[test]
    fn a_crate_of_unknown_place_is_found() {
        check("lastbyte-extra", "lastbyte-sys", Purpose::Crate, 1);
    }
}
