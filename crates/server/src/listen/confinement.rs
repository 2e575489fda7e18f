//! Whether a peer is in a sandbox that the server is not in. Such a peer must not have the server do
//! what it may not do itself.
//!
//! The engine tells a sandboxed process by marks that neither it nor anything that it starts can take
//! off. So this asks for no list of trees, which a process that was born a moment ago is not in, and
//! it holds for the commands of any other server, too. A server that is in such a sandbox itself looks
//! for those who are in more of them than it is: each has a filter of system calls. Filters of others,
//! a container's say, mean nothing: a command that was started outside of it may have fewer.

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

/// What a server is in itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Own {
    filters: Filters,
    confined: bool,
}

/// How many filters a process has on its system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Default)]
struct Filters(u64);

impl Own {
    pub(super) fn look() -> Self {
        // Without /proc no peer can be looked at either, and that refuses it.
        let filters = status("self").ok().and_then(|status| Filters::of(&status));
        let confined = confined(std::process::id().cast_signed());
        Self { filters: filters.unwrap_or_default(), confined }
    }

    /// Looks at a process by its number, which must be that of the peer still.
    pub(super) fn confinement_of(self, pid: i32) -> Confinement {
        let Some(filters) = status(&pid.to_string()).ok().and_then(|status| Filters::of(&status))
        else {
            return Confinement::Unknown;
        };
        let in_more_than_we = !self.confined || filters > self.filters;
        match in_more_than_we && confined(pid) {
            true => Confinement::Sandboxed,
            false => Confinement::None,
        }
    }
}

impl Filters {
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
    use lastbyte_engine::{Engine, Launch, Network, Sandbox, Settings, Verb};

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
        assert_eq!(Own::look().confinement_of(own), Confinement::None);
    }

    /// A container's filters are on the server and not on what was started outside of it.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_with_filters_of_others_still_tells_who_is_sandboxed() {
        let state = tempfile::tempdir().unwrap();
        let engine = Engine::new(Settings::new(state.path())).unwrap();
        let sandbox = Sandbox::ReadOnly { network: Network::Off };
        let launch = Launch { sandbox, ..Launch::argv(["sleep", "600"]) };
        let process = engine.start(launch).await.unwrap().process;
        let pid = process.about().pid;
        let seen_by = |confined| Own { filters: Filters(9), confined }.confinement_of(pid);
        assert_eq!(seen_by(false), Confinement::Sandboxed);
        assert_eq!(seen_by(true), Confinement::None, "it is in the same one, and in fewer");
        process.stop(Verb::Stop).await;
    }

    #[test]
    fn of_a_process_that_is_gone_nothing_is_known() {
        // Larger than any pid can be.
        assert_eq!(Own::look().confinement_of(i32::MAX), Confinement::Unknown);
    }
}
