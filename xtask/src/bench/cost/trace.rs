//! System calls of a program, counted with strace.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::TIMER_THREAD;

/// Calls that sleep, wake, or get memory for the allocator. Their number depends on timing; context
/// switches and allocations are counted instead.
const NOT_COUNTED: [&str; 7] =
    ["brk", "epoll_pwait", "epoll_wait", "futex", "madvise", "mprotect", "sched_yield"];
/// The bytes written to an eventfd to wake a thread.
const WAKE: &str = r#""\1\0\0\0\0\0\0\0", 8"#;

/// The output of strace about a program, and about each of its children until it runs its command.
pub(super) struct Trace {
    path: PathBuf,
    /// How much of the file was read, in whole lines.
    read_len: u64,
    timer_threads: HashSet<String>,
    calls: u64,
}

impl Trace {
    /// The reason why strace cannot be used, if any.
    pub(super) fn unavailable() -> Option<String> {
        match strace().args(["-o", "/dev/null", "true"]).output() {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Some(format!("cannot run strace: {error}")),
        }
    }

    pub(super) fn new(folder: &Path) -> Self {
        Self { path: folder.join("trace"), read_len: 0, timer_threads: HashSet::new(), calls: 0 }
    }

    /// Runs `program` as a child of strace. When strace has ended, so has the program.
    pub(super) fn command(&self, program: &Path) -> Command {
        self.strace(&[], program)
    }

    /// Runs `program` as the child itself, so that killing the child kills the program.
    pub(super) fn server(&self, program: &Path) -> Command {
        self.strace(&["-D"], program)
    }

    fn strace(&self, options: &[&str], program: &Path) -> Command {
        let mut strace = strace();
        // With all threads, but without children once they run their command.
        strace.args(options).args(["-f", "-b", "execve", "-qq", "-s", "32", "-o"]);
        strace.arg(&self.path).arg(program);
        strace
    }

    /// The calls so far.
    pub(super) fn calls(&mut self) -> Result<u64> {
        let mut file = File::open(&self.path).context("strace wrote nothing")?;
        file.seek(SeekFrom::Start(self.read_len))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.read_len += end as u64;
        for line in String::from_utf8_lossy(&bytes[..end]).lines() {
            self.take(line)?;
        }
        Ok(self.calls)
    }

    fn take(&mut self, line: &str) -> Result<()> {
        let Some((thread, what)) = line.split_once(char::is_whitespace) else {
            bail!("strace says {line:?}");
        };
        let what = what.trim_start();
        if what.starts_with(&format!("prctl(PR_SET_NAME, \"{TIMER_THREAD}\"")) {
            self.timer_threads.insert(thread.to_owned());
        }
        if is_counted(what) && !self.timer_threads.contains(thread) {
            self.calls += 1;
        }
        Ok(())
    }
}

/// With no signal ignored: each that is costs another call per command, and a script ignores SIGINT and SIGQUIT
/// for what it runs in the background.
fn strace() -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", "strace"]);
    command
}

/// Whether this line is a call, rather than the end of a call, a signal or an exit.
fn is_counted(what: &str) -> bool {
    let Some((name, arguments)) = what.split_once('(') else {
        return false;
    };
    let is_call = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_wake = name == "write" && arguments.contains(WAKE);
    is_call && !is_wake && !NOT_COUNTED.contains(&name)
}

impl Drop for Trace {
    fn drop(&mut self) {
        // The file may never have been written.
        _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_once_at_its_start() {
        assert!(is_counted("close(3) = 0"));
        assert!(is_counted("recvmsg(7,  <unfinished ...>"));
        assert!(!is_counted("<... recvmsg resumed>, 0) = 12"));
        assert!(!is_counted("--- SIGCHLD {si_signo=SIGCHLD} ---"));
        assert!(!is_counted("+++ exited with 0 +++"));
    }

    #[test]
    fn a_wake_is_not_counted_and_another_write_is() {
        assert!(!is_counted(r#"write(4, "\1\0\0\0\0\0\0\0", 8) = 8"#));
        assert!(is_counted(r#"write(4, "\2\0\0\0\0\0\0\0", 8) = 8"#));
        assert!(!is_counted("futex(0x7f, FUTEX_WAKE_PRIVATE, 1) = 1"));
    }

    #[test]
    fn the_timer_thread_is_not_counted() {
        let mut trace = Trace::new(Path::new("/nowhere"));
        for line in
            ["11 prctl(PR_SET_NAME, \"orphans\") = 0", "11  close(3) = 0", "12  close(3) = 0"]
        {
            trace.take(line).expect("a line");
        }
        assert_eq!(trace.calls, 1);
    }
}
