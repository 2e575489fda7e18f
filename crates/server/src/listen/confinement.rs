//! Whether a peer is in a sandbox that the server is not in. Such a peer must not have the server do
//! what it may not do itself.
//!
//! The engine tells a sandboxed process by marks that neither it nor anything that it starts can take
//! off. So this asks for no list of trees, which a process that was born a moment ago is not in, and
//! it holds for the commands of any other server, too. A server that is in a sandbox itself looks for
//! those who are in more of them than it is: each has a filter of system calls.

use std::fs;
use std::io;

use lastbyte_engine::confined;

/// What is known of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// It may do what the server may do, as far as sandboxes go.
    None,
    Sandboxed,
    /// It is gone, or cannot be looked at. Whoever has its connection now may be anybody.
    Unknown,
}

/// How many filters a process has on its system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Filters(u64);

impl Filters {
    pub(super) fn own() -> Self {
        // Without /proc no peer can be looked at either, and that refuses it.
        status("self").ok().and_then(|status| Self::of(&status)).unwrap_or_default()
    }

    /// Looks at a process by its number, which must be that of the peer still.
    pub(super) fn confinement_of(self, pid: i32) -> Confinement {
        match status(&pid.to_string()).ok().and_then(|status| Self::of(&status)) {
            // Filters alone have many: those in containers, browsers, sandboxes of others.
            Some(Self(filters)) if filters > self.0 && confined(pid) => Confinement::Sandboxed,
            Some(_) => Confinement::None,
            None => Confinement::Unknown,
        }
    }

    /// Of a page of `/proc`; `None` of a process that is gone but not waited for.
    fn of(status: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.strip_prefix(':')).map(str::trim)
        };
        let number = |name| field(name).and_then(|text| text.parse::<u64>().ok());
        if field("State")?.starts_with(['Z', 'X']) {
            return None;
        }
        // Kernels before 5.9 say whether, not how many.
        Some(Self(number("Seccomp_filters").or_else(|| number("Seccomp")).unwrap_or(0)))
    }
}

fn status(process: &str) -> io::Result<String> {
    fs::read_to_string(format!("/proc/{process}/status"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_counted_as_the_kernel_writes_them() {
        let of = |state: &str, rest: &str| Filters::of(&format!("State:\t{state}\n{rest}"));
        assert_eq!(of("S (sleeping)", "Seccomp:\t2\nSeccomp_filters:\t3\n"), Some(Filters(3)));
        assert_eq!(of("R (running)", ""), Some(Filters(0)));
        assert_eq!(of("Z (zombie)", "Seccomp:\t2\nSeccomp_filters:\t3\n"), None);
        assert_eq!(Filters::of(""), None);
    }

    #[test]
    fn we_are_not_more_confined_than_ourselves() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(Filters::own().confinement_of(own), Confinement::None);
    }

    #[test]
    fn of_a_process_that_is_gone_nothing_is_known() {
        // Larger than any pid can be.
        assert_eq!(Filters::own().confinement_of(i32::MAX), Confinement::Unknown);
    }
}
