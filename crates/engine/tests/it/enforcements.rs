//! The enforcements that must work on this machine, found without the engine: a probe that fails by
//! mistake must not disable the tests of what it probes.
#![expect(clippy::disallowed_methods, reason = "a look at the machine, not a command")]

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use lastbyte_engine::Enforcement;
use lastbyte_testkit::not_run;

/// Landlock always, and each kind of namespace that `unshare` can create. The others are reported.
pub fn enforcements_here() -> Vec<Enforcement> {
    static HERE: OnceLock<Vec<Enforcement>> = OnceLock::new();
    HERE.get_or_init(|| Enforcement::ALL.into_iter().filter(|one| is_here(*one)).collect()).clone()
}

/// The ones that can protect and hide files.
pub fn with_mounts() -> impl Iterator<Item = Enforcement> {
    enforcements_here().into_iter().filter(|one| *one != Enforcement::Landlock)
}

fn is_here(enforcement: Enforcement) -> bool {
    let options: &[&str] = match enforcement {
        Enforcement::Mounts => &["--mount"],
        Enforcement::UserMounts => &["--user", "--map-current-user", "--mount"],
        Enforcement::Landlock => return true,
    };
    let unshared = Command::new("unshare").args(options).arg("true").stderr(Stdio::null()).status();
    let here = unshared.expect("unshare is installed").success();
    if !here {
        not_run(&format!("{enforcement:?}: `unshare {}` is refused here", options.join(" ")));
    }
    here
}
