//! How policies can be enforced here, each way tried out with a child that does nothing else.

use lastbyte_engine::{Enforcement, Missing};
use lastbyte_sys::spawn::Mechanism;

use super::Finding;
use super::checks::{chain, no, yes};

/// A way, and what it does not find here.
pub(super) type Tried = (Enforcement, Result<(), Missing>);

/// Best first.
pub(super) fn try_all() -> Vec<Tried> {
    let ways = Enforcement::ALL.into_iter();
    ways.map(|way| (way, way.probe(Mechanism::Clone3))).collect()
}

/// The best way, in a word; `None` when no command can be sandboxed.
pub(super) fn enforced_by(tried: &[Tried]) -> Option<&'static str> {
    let (way, _) = tried.iter().find(|(_, tried)| tried.is_ok())?;
    Some(match way {
        Enforcement::Mounts => "mounts",
        Enforcement::UserMounts => "user_mounts",
        Enforcement::Landlock => "landlock",
    })
}

pub(super) fn finding((way, tried): &Tried) -> Finding {
    let (name, meaning) = match way {
        Enforcement::Mounts => {
            ("mount sandbox", "every policy, by read-only mounts, Landlock and a filter of calls")
        }
        Enforcement::UserMounts => {
            ("user sandbox", "the same in a user namespace, for a server without privileges")
        }
        Enforcement::Landlock => (
            "bare sandbox",
            "without namespaces: policies without --network and --protect, and no file's mode, \
             owner or time can be changed",
        ),
    };
    match tried {
        Ok(()) => yes(name, meaning),
        Err(missing) => no(name, chain(missing)),
    }
}
