//! An ending in words, for people.

use std::fmt;
use std::time::Duration;

use lastbyte_engine::{Cause, Closing, Ending, Process, Status, Timeout};

/// Those who outlive the command and hold its output open; nobody is named when none was found.
#[derive(Debug)]
pub(crate) struct Left(Vec<Named>);

#[derive(Debug)]
struct Named {
    pid: i32,
    name: String,
}

/// Who is left, if anybody holds the output open. Only then is there anything to look for: in the
/// ordinary case nobody looks through all processes.
pub(crate) async fn still_running(process: &Process, ending: &Ending) -> Option<Left> {
    match &ending.closing {
        Closing::Eof => None,
        // They were there at the ending, but a stop has ended them since, or they went by themselves.
        Closing::Held(_) if !process.snapshot().log_open => None,
        Closing::Held(_) => {
            let survivors = process.survivors().await.into_iter();
            Some(Left(survivors.map(|left| Named { pid: left.pid, name: left.name }).collect()))
        }
    }
}

impl Left {
    fn who(&self) -> String {
        if self.0.is_empty() {
            return "somebody who holds the output open".into();
        }
        // A process chooses its name; it does not get to write to the terminal.
        let named = |left: &Named| format!("{} (pid {})", left.name.escape_debug(), left.pid);
        self.0.iter().map(named).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Left {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.who();
        write!(out, "still running: {who}; later output has no reader, and cannot be written")
    }
}

/// How it went, in one line.
#[derive(Debug)]
pub(crate) struct Summary<'a> {
    pub(crate) ending: &'a Ending,
    pub(crate) left: Option<&'a Left>,
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ending { status, cause, final_len, times, usage, .. } = self.ending;
        match status {
            Status::Exited(code) => write!(out, "exit code {code}")?,
            Status::Signalled { signal, core_dumped: false } => write!(out, "ended by {signal}")?,
            Status::Signalled { signal, core_dumped: true } => {
                write!(out, "ended by {signal} (core dumped)")?;
            }
            Status::Lost(why) => write!(out, "status lost ({why})")?,
        }
        write!(
            out,
            ", {}, after {}; {final_len} bytes of output",
            why(*cause),
            Seconds(times.ran)
        )?;
        if let Some(usage) = usage {
            write!(out, "; cpu {} user, {} system", Seconds(usage.user), Seconds(usage.system))?;
        }
        match self.left {
            Some(left) => write!(out, "; still running: {}", left.who()),
            None => Ok(()),
        }
    }
}

fn why(cause: Cause) -> &'static str {
    match cause {
        Cause::Own => "on its own",
        Cause::TimedOut { which: Timeout::Wall, escalated: false } => "stopped by the timeout",
        Cause::TimedOut { which: Timeout::Wall, escalated: true } => "killed by the timeout",
        Cause::TimedOut { which: Timeout::Idle, escalated: false } => "stopped by the idle timeout",
        Cause::TimedOut { which: Timeout::Idle, escalated: true } => "killed by the idle timeout",
        Cause::Stopped { escalated: false, .. } => "stopped",
        Cause::Stopped { escalated: true, .. } => "killed",
    }
}

struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.3}s", self.0.as_secs_f64())
    }
}
