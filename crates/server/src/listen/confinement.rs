//! Whether a peer is in a sandbox that the server is not in. Such a peer must not make the server do
//! what it may not do itself.
//!
//! The engine marks sandboxed processes so that neither they nor their children can remove the mark.
//! This works without a list of processes, which would miss one that was forked a moment ago, and for
//! commands of other servers too. A server that is in such a sandbox itself compares the number of
//! system call filters: each sandbox adds one. Other filters, for example of a container, prove
//! nothing: a command started outside of the container may have fewer.

use std::fs;
use std::io;

use lastbyte_engine::confined;
use rustix::io::Errno;

/// What is known of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerConfinement {
    /// It may do what the server may do, as far as sandboxes go.
    None,
    Sandboxed,
    /// It is gone or cannot be inspected, so its connection may belong to any process now.
    Unknown,
    /// The server lacks descriptors or memory to inspect it.
    Unchecked(Errno),
}

/// The sandbox that the server is in itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OwnConfinement {
    /// How many filters are on its system calls.
    filters: u64,
    confined: bool,
}

impl OwnConfinement {
    pub(super) fn detect() -> Self {
        // Without /proc no peer can be looked at either, and that refuses it.
        let filters = status("self").ok().and_then(|status| filters(&status));
        let confined = confined(std::process::id().cast_signed()).unwrap_or(true);
        Self { filters: filters.unwrap_or_default(), confined }
    }

    /// Looks at a process by its number, which must be that of the peer still.
    pub(super) fn confinement_of(self, pid: i32) -> PeerConfinement {
        self.look_at(pid).unwrap_or_else(|error| {
            PeerConfinement::unseen(Errno::from_io_error(&error).unwrap_or(Errno::IO))
        })
    }

    fn look_at(self, pid: i32) -> io::Result<PeerConfinement> {
        let Some(filters) = filters(&status(&pid.to_string())?) else {
            return Ok(PeerConfinement::Unknown);
        };
        let in_more_than_we = !self.confined || filters > self.filters;
        let sandboxed = in_more_than_we && confined(pid)?;
        Ok(if sandboxed { PeerConfinement::Sandboxed } else { PeerConfinement::None })
    }
}

impl PeerConfinement {
    /// Of a peer at which a look has failed: that says something of the peer only if the server
    /// has what a look takes.
    pub(super) fn unseen(errno: Errno) -> Self {
        match errno {
            Errno::MFILE | Errno::NFILE | Errno::NOMEM => Self::Unchecked(errno),
            _ => Self::Unknown,
        }
    }
}

/// How many filters are on the system calls of a process, by its page of `/proc`; `None` of one that
/// is gone but not waited for.
fn filters(status: &str) -> Option<u64> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let number = |name| field(name).and_then(|text| text.parse().ok());
    if field("State:")?.starts_with(['Z', 'X']) {
        return None;
    }
    // Kernels before 5.9 say whether, not how many.
    Some(number("Seccomp_filters:").or_else(|| number("Seccomp:")).unwrap_or(0))
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
        let of = |state: &str, rest: &str| filters(&format!("State:\t{state}\n{rest}"));
        assert_eq!(of("S (sleeping)", "Seccomp:\t2\nSeccomp_filters:\t3\n"), Some(3));
        assert_eq!(of("R (running)", ""), Some(0));
        assert_eq!(of("Z (zombie)", "Seccomp:\t2\nSeccomp_filters:\t3\n"), None);
        assert_eq!(filters(""), None);
    }

    #[test]
    fn we_are_not_more_confined_than_ourselves() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(OwnConfinement::detect().confinement_of(own), PeerConfinement::None);
    }

    /// A container's filters are on the server and not on what was started outside of it.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_with_filters_of_others_still_tells_who_is_sandboxed() {
        let state = tempfile::tempdir().unwrap();
        let engine = Engine::new(Settings::new(state.path())).unwrap();
        let sandbox = Sandbox::ReadOnly { network: Network::Off };
        let launch = Launch { sandbox, ..Launch::argv(["sleep", "600"]) };
        let process = engine.start(launch).await.unwrap().process;
        let pid = process.pid();
        let seen_by = |confined| OwnConfinement { filters: 9, confined }.confinement_of(pid);
        assert_eq!(seen_by(false), PeerConfinement::Sandboxed);
        assert_eq!(seen_by(true), PeerConfinement::None, "it is in the same one, and in fewer");
        process.stop(Verb::Stop).await;
    }

    #[test]
    fn of_a_process_that_is_gone_nothing_is_known() {
        // Larger than any pid can be.
        assert_eq!(OwnConfinement::detect().confinement_of(i32::MAX), PeerConfinement::Unknown);
    }
}
