//! Recognises a confined process by what it cannot undo.

use std::io;

use rustix::io::Errno;

use crate::procfs::words;

/// Whether this process, or an ancestor of it, was started with a
/// [`Confinement`](super::Confinement), by this program or another. Fails if the process is gone or
/// cannot be read.
///
/// Every confined child has a hard limit of no message queues, a filter and `no_new_privs`. Its
/// children inherit all three, and nothing can undo them, whatever the process does to its session,
/// its parents and its environment.
pub fn marked(pid: i32) -> io::Result<bool> {
    let status = read(pid, "status")?;
    let has = |name, value| words(&status, name).next() == Some(value);
    let filtered = has("NoNewPrivs:", "1") && has("Seccomp:", "2");
    Ok(filtered && hard_limit(&read(pid, "limits")?) == Some("0"))
}

fn read(pid: i32, file: &str) -> io::Result<String> {
    let text = std::fs::read(format!("/proc/{pid}/{file}"))?;
    if text.is_empty() {
        // The process is gone, but its folder is still there.
        return Err(io::Error::from(Errno::SRCH));
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// `Max msgqueue size         819200               819200               bytes`
fn hard_limit(limits: &str) -> Option<&str> {
    words(limits, "Max msgqueue size").nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_not_marked_and_a_process_that_is_not_there_is_nobody() {
        assert!(!marked(std::process::id().cast_signed()).expect("this process is there"));
        assert!(marked(i32::MAX).is_err());
    }

    #[test]
    fn the_hard_limit_is_the_second_number() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax msgqueue size   7   0   bytes\n";
        assert_eq!(hard_limit(limits), Some("0"));
    }
}
