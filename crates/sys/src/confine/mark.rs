//! Recognises a confined process by what it cannot undo.

use std::io;

use rustix::io::Errno;

/// Whether this process, or an ancestor of it, was started with a
/// [`Confinement`](super::Confinement).
///
/// Every confined child has a hard limit of no message queues, a filter and `no_new_privs`. Its
/// children inherit all three, and nothing can undo them, whatever the process does to its session,
/// its parents and its environment.
pub fn marked(pid: i32) -> io::Result<bool> {
    let status = read(pid, "status")?;
    let filtered =
        field(&status, "NoNewPrivs:") == Some("1") && field(&status, "Seccomp:") == Some("2");
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

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// `Max msgqueue size         819200               819200               bytes`
fn hard_limit(limits: &str) -> Option<&str> {
    let numbers = limits.lines().find_map(|line| line.strip_prefix("Max msgqueue size"))?;
    numbers.split_whitespace().nth(1)
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
