//! A crate is a permission: some foreign crates are for some of ours alone.

use super::workspace::{Purpose, Violation, Workspace};

/// Who may use it, and what the others do instead. Tests may use anything.
const ONLY_FOR: [(&str, &[&str], &str); 7] = [
    ("anyhow", &["lastbyte-cli", "xtask"], "name the errors of an operation in an enum"),
    ("axum", &["lastbyte-server", "xtask"], "let a door speak HTTP"),
    ("clap", &["lastbyte-cli"], "let cli parse and pass values"),
    ("libc", &["lastbyte-sys"], "use rustix, or give sys a safe function"),
    ("serde", TALKERS, "keep values plain and let the edge serialise them"),
    ("serde_json", TALKERS, "keep values plain and let the edge serialise them"),
    (
        "tokio",
        &[
            "lastbyte-cli",
            "lastbyte-client",
            "lastbyte-engine",
            "lastbyte-server",
            "lastbyte-sys", // only to register descriptors, which is unsafe: ADR 4
            "xtask",
        ],
        "stay synchronous and let the engine wait",
    ),
];

/// The crates that speak a protocol or a format.
const TALKERS: &[&str] =
    &["lastbyte-cli", "lastbyte-client", "lastbyte-server", "lastbyte-wire", "xtask"];

pub(super) fn are_kept(workspace: &Workspace) -> Vec<Violation> {
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

    fn check(member: &str, dependency: &str, purpose: Purpose, violations: usize) {
        let workspace = Workspace::default().with_crate(member, &[(dependency, purpose)]);
        assert_eq!(are_kept(&workspace).len(), violations, "{member} uses {dependency}");
    }

    #[test]
    fn a_crate_without_the_permission_is_found() {
        check("lastbyte-engine", "tokio", Purpose::Crate, 0);
        check("lastbyte-output", "tokio", Purpose::Crate, 1);
        check("lastbyte-engine", "serde", Purpose::Crate, 1);
        check("lastbyte-engine", "libc", Purpose::Crate, 1);
        check("lastbyte-sys", "thiserror", Purpose::Crate, 0);
    }

    #[test]
    fn tests_may_use_anything() {
        check("lastbyte-output", "serde_json", Purpose::Tests, 0);
    }
}
