//! Keeps other programs of the user from tracing a server, where its sandbox permits that.

use lastbyte_engine::Enforcement;
use lastbyte_sys::spawn::Mechanism;
use lastbyte_sys::untraceable::become_untraceable;

/// Not if commands are confined in user namespaces: a child that shares the memory of an untraceable
/// program cannot map its user there.
pub(crate) fn become_untraceable_if_possible() {
    let can_mount = Enforcement::Mounts.probe(Mechanism::Clone3).is_ok();
    let uses_user_namespaces = || match Enforcement::UserMounts.probe(Mechanism::Clone3) {
        Ok(()) => true,
        // It might work later.
        Err(missing) => missing.is_shortage(),
    };
    if can_mount || !uses_user_namespaces() {
        become_untraceable();
    }
}
