//! Which enforcements there have to be on this machine, found without asking the engine: a probe
//! that fails by mistake must not make the tests of what it probes vanish.
#![expect(clippy::disallowed_methods, reason = "a look at the machine, not a command")]

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use lastbyte_engine::Enforcement;
use lastbyte_testkit::not_run;

/// Landlock always; each kind of namespaces if `unshare` can make it. What is missing is said.
pub fn enforcements_here() -> Vec<Enforcement> {
    static HERE: OnceLock<Vec<Enforcement>> = OnceLock::new();
    HERE.get_or_init(|| Enforcement::ALL.into_iter().filter(|one| is_here(*one)).collect()).clone()
}

/// Those of them that can protect and hide.
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
