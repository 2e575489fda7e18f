//! Whether a peer is in a sandbox that the server is not in. Such a peer must not have the server do
//! what it may not do itself.
//!
//! A process cannot take off two marks, nor can anything that it starts: that it gains no privileges
//! by `execve`, and the filters on its system calls. Every sandboxed command has both, whoever runs
//! it, so this asks for no list of trees, which a process that was born a moment ago is not in.

use std::fs;
use std::io;

/// What is known of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// It may do what the server may do, as far as sandboxes go.
    None,
    Sandboxed,
    /// It is gone, or cannot be looked at. Whoever has its connection now may be anybody.
    Unknown,
}

/// The marks of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Marks {
    no_new_privileges: bool,
    filters: u64,
}

impl Marks {
    pub(super) fn own() -> Self {
        // Without /proc no peer can be looked at either, and that refuses it.
        status("self").ok().and_then(|status| Self::of(&status)).unwrap_or_default()
    }

    /// Looks at a process by its number, which must be that of the peer still.
    pub(super) fn confinement_of(self, pid: i32) -> Confinement {
        match status(&pid.to_string()).ok().and_then(|status| Self::of(&status)) {
            Some(peer) if peer.no_new_privileges && peer.filters > self.filters => {
                Confinement::Sandboxed
            }
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
        Some(Self {
            no_new_privileges: number("NoNewPrivs") == Some(1),
            // Kernels before 5.9 say whether, not how many.
            filters: number("Seccomp_filters").or_else(|| number("Seccomp")).unwrap_or(0),
        })
    }
}

fn status(process: &str) -> io::Result<String> {
    fs::read_to_string(format!("/proc/{process}/status"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(state: &str, no_new_privileges: u8, filters: u8) -> String {
        format!(
            "Name:\tsh\nState:\t{state}\nNoNewPrivs:\t{no_new_privileges}\nSeccomp:\t2\n\
             Seccomp_filters:\t{filters}\n"
        )
    }

    #[test]
    fn the_marks_are_read_as_the_kernel_writes_them() {
        let marks = Marks { no_new_privileges: true, filters: 3 };
        assert_eq!(Marks::of(&page("S (sleeping)", 1, 3)), Some(marks));
        assert_eq!(Marks::of("State:\tR (running)\n"), Some(Marks::default()));
        assert_eq!(Marks::of(&page("Z (zombie)", 1, 3)), None);
        assert_eq!(Marks::of(""), None);
    }

    #[test]
    fn we_are_not_more_confined_than_ourselves() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(Marks::own().confinement_of(own), Confinement::None);
    }

    #[test]
    fn of_a_process_that_is_gone_nothing_is_known() {
        // Larger than any pid can be.
        assert_eq!(Marks::own().confinement_of(i32::MAX), Confinement::Unknown);
    }
}
