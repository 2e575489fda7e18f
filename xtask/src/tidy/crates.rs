//! Checks of what each crate depends on: a crate is a permission.

use super::workspace::{Crate, Dependency, Purpose, Violation, Workspace};

/// Which of our crates each may use. Tests may also use `lastbyte-testkit`.
const MAY_USE: [(&str, &[&str]); 12] = [
    (
        "lastbyte-cli",
        &[
            "lastbyte-client",
            "lastbyte-engine",
            "lastbyte-fleet",
            "lastbyte-keeper",
            "lastbyte-output",
            "lastbyte-server",
            "lastbyte-sys",
            "lastbyte-wire",
        ],
    ),
    ("lastbyte-client", &["lastbyte-wire"]),
    ("lastbyte-server", &["lastbyte-engine", "lastbyte-output", "lastbyte-sys", "lastbyte-wire"]),
    ("lastbyte-fleet", &["lastbyte-engine", "lastbyte-server", "lastbyte-sys", "lastbyte-wire"]),
    ("lastbyte-wire", &[]),
    ("lastbyte-engine", &["lastbyte-output", "lastbyte-sys"]),
    ("lastbyte-output", &["lastbyte-sys"]),
    ("lastbyte-keeper", &["lastbyte-sys"]),
    ("lastbyte-sys", &[]),
    ("lastbyte-testkit", &[]),
    ("nkeys", &[]),
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

/// Dependencies between our crates point one way.
pub(super) fn point_one_way(workspace: &Workspace) -> Vec<Violation> {
    workspace.crates.iter().flat_map(|member| check_crate(workspace, member)).collect()
}

fn check_crate(workspace: &Workspace, member: &Crate) -> Vec<Violation> {
    let Some((_, may_use)) = MAY_USE.iter().find(|(name, _)| *name == member.name) else {
        let what = "an unknown crate: list in xtask/src/tidy/crates.rs which crates it may use";
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
                "{} may not use {}: move the code to a crate that both may use",
                member.name, dependency.name
            );
            Violation::new(&member.manifest, line, what)
        })
        .collect()
}

/// Foreign crates, which of ours may use them, and what the others do instead. Tests may use any.
const ONLY_FOR: [(&str, &[&str], &str); 8] = [
    ("async-nats", &["lastbyte-fleet"], "let fleet speak to the broker"),
    ("anyhow", &["lastbyte-cli", "xtask"], "name the errors of an operation in an enum"),
    ("axum", &["lastbyte-fleet", "lastbyte-server", "xtask"], "let a door speak HTTP"),
    ("clap", &["lastbyte-cli"], "let cli parse and pass values"),
    ("libc", &["lastbyte-sys"], "use rustix, or give sys a safe function"),
    ("serde", SERIALISERS, "keep values plain and let the edge serialise them"),
    ("serde_json", SERIALISERS, "keep values plain and let the edge serialise them"),
    (
        "tokio",
        &[
            "lastbyte-cli",
            "lastbyte-client",
            "lastbyte-engine",
            "lastbyte-fleet",
            "lastbyte-server",
            "lastbyte-sys", // only to register descriptors, which is unsafe: ADR 4
            "xtask",
        ],
        "stay synchronous and let the engine wait",
    ),
];

/// The crates that serialise.
const SERIALISERS: &[&str] = &[
    "lastbyte-cli",
    "lastbyte-client",
    "lastbyte-fleet",
    "lastbyte-server",
    "lastbyte-wire",
    "xtask",
];

/// Some foreign crates are only for some of ours.
pub(super) fn use_only_permitted(workspace: &Workspace) -> Vec<Violation> {
    let mut violations = Vec::new();
    for member in &workspace.crates {
        for dependency in &member.dependencies {
            let rule = ONLY_FOR.iter().find(|(name, ..)| *name == dependency.name);
            let Some((name, users, instead)) = rule else { continue };
            if dependency.purpose == Purpose::Crate && !users.contains(&member.name.as_str()) {
                let what = format!("{} may not use {name}: {instead}", member.name);
                let line = workspace.line_of(&member.manifest, name);
                violations.push(Violation::new(&member.manifest, line, what));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_direction(name: &str, dependency: &str, purpose: Purpose, violations: usize) {
        let workspace = Workspace::default()
            .with_crate(name, &[(dependency, purpose), ("libc", Purpose::Crate)])
            .with_crate(dependency, &[]);
        assert_eq!(point_one_way(&workspace).len(), violations, "{name} uses {dependency}");
    }

    #[test]
    fn a_dependency_down_is_fine_and_one_up_is_not() {
        check_direction("lastbyte-engine", "lastbyte-sys", Purpose::Crate, 0);
        check_direction("lastbyte-sys", "lastbyte-engine", Purpose::Crate, 1);
        check_direction("lastbyte-engine", "lastbyte-wire", Purpose::Crate, 1);
        check_direction("lastbyte-output", "lastbyte-engine", Purpose::Tests, 1);
    }

    #[test]
    fn testkit_is_for_tests_only() {
        check_direction("lastbyte-sys", "lastbyte-testkit", Purpose::Tests, 0);
        check_direction("lastbyte-sys", "lastbyte-testkit", Purpose::Crate, 1);
    }

    #[test]
    fn an_unknown_crate_is_found() {
        check_direction("lastbyte-extra", "lastbyte-sys", Purpose::Crate, 1);
    }

    fn check_permission(member: &str, dependency: &str, purpose: Purpose, violations: usize) {
        let workspace = Workspace::default().with_crate(member, &[(dependency, purpose)]);
        assert_eq!(use_only_permitted(&workspace).len(), violations, "{member} uses {dependency}");
    }

    #[test]
    fn a_use_without_permission_is_found() {
        check_permission("lastbyte-engine", "tokio", Purpose::Crate, 0);
        check_permission("lastbyte-output", "tokio", Purpose::Crate, 1);
        check_permission("lastbyte-engine", "serde", Purpose::Crate, 1);
        check_permission("lastbyte-engine", "libc", Purpose::Crate, 1);
        check_permission("lastbyte-sys", "thiserror", Purpose::Crate, 0);
    }

    #[test]
    fn tests_may_use_anything() {
        check_permission("lastbyte-output", "serde_json", Purpose::Tests, 0);
    }
}
