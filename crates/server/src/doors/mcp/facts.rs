//! What is known of a process, in a few lines before its output.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lastbyte_wire::{
    Cause, Closing, InputKind, Kept, Met, Phase, Process, Status, StopVerb, Survivor, TimeoutKind,
};

/// How many processes are named.
const NAMED: usize = 5;
/// How much of a command, and of a name, is shown.
const COMMAND_BYTES: usize = 120;
const NAME_BYTES: usize = 32;

/// The id, and how it is or ended: one line.
pub(super) fn headline(process: &Process) -> String {
    let name = process.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("process {}{name}: {}", process.id, state(process))
}

/// `running for 3 s`, or the ending with its cause and how long it ran.
pub(super) fn state(process: &Process) -> String {
    let Some(ending) = &process.ending else {
        let phase = match process.phase {
            Phase::Running => "running",
            Phase::Draining => "draining (it has exited, and its last output is being stored)",
            Phase::Ended | Phase::Lost => "ended",
        };
        let timed_out = if process.timed_out_at_unix_ns.is_some() {
            "; its timeout has passed, and it goes on in the background"
        } else {
            ""
        };
        return format!("{phase} for {}{timed_out}", age(process));
    };
    let ran = ending.times.ran_ns.map(|ns| format!(" after {}", seconds(Duration::from_nanos(ns))));
    let mut text = format!("{}{}", status(&ending.status), ran.unwrap_or_default());
    if let Some(cause) = ending.cause.as_ref().and_then(cause) {
        text.push_str(&format!("; {cause}"));
    }
    for (holds, words) in [
        (ending.oom_killed, "; the kernel killed it because memory ran out"),
        (ending.sandbox_denied, "; the sandbox killed it"),
    ] {
        if holds {
            text.push_str(words);
        }
    }
    text
}

/// How much output there is, and whether all of it can be read.
pub(super) fn output(process: &Process) -> String {
    let mut text = format!("output: {} bytes", process.total);
    let lost: u64 = process.dropped.iter().map(|range| range.end - range.start).sum();
    let kept = process.ending.as_ref().and_then(|ending| ending.kept.as_ref());
    match kept {
        Some(Kept::Failed { at, .. }) => {
            text.push_str(&format!(", not whole: storing it failed at byte {at}"));
        }
        _ if lost > 0 => text.push_str(&format!(", not whole: {lost} of them were dropped")),
        Some(Kept::Whole) => text.push_str(", whole"),
        Some(Kept::Dropped { .. }) | None => {}
    }
    if let Some(ending) = &process.ending {
        if ending.masked > 0 {
            text.push_str(&format!(", {} secrets masked", ending.masked));
        }
        if process.total > ending.final_len {
            let from = ending.final_len;
            text.push_str(&format!(", from byte {from} on written after it ended"));
        }
    }
    text
}

/// What it has left running; `None` if that is nothing.
pub(super) fn survivors(process: &Process, survivors: &[Survivor]) -> Option<String> {
    let ending = process.ending.as_ref()?;
    let mut lines = Vec::new();
    if !survivors.is_empty() {
        let named = survivors.iter().map(|it| (it.pid, it.name.as_str()));
        lines.push(format!("still running: {}", names(named, survivors.len())));
    }
    if let Some(Closing::Held { holders }) = &ending.closing {
        let known = holders.as_deref().unwrap_or_default();
        let by = match known {
            [] => "by a process that could not be found".to_owned(),
            known => {
                let named = known.iter().map(|it| (it.pid, it.name.as_str()));
                format!("by {}", names(named, known.len()))
            }
        };
        lines.push(format!("its output is held open {by}"));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn names<'a>(named: impl Iterator<Item = (i32, &'a str)>, count: usize) -> String {
    let named =
        named.take(NAMED).map(|(pid, name)| format!("{} (pid {pid})", short(name, NAME_BYTES)));
    let mut text = named.collect::<Vec<_>>().join(", ");
    if count > NAMED {
        text.push_str(&format!(" and {} more", count - NAMED));
    }
    text
}

/// That it waits for input, and how to give it; `None` if that is not what was met.
pub(super) fn needs_input(met: &Met) -> Option<String> {
    let Met::NeedsInput { pid, name, on, secret } = met else { return None };
    let on = match on {
        InputKind::Terminal => "on its terminal",
        InputKind::Pipe => "on its standard input",
    };
    let secret = if *secret { ", and does not show what is typed (a password?)" } else { "" };
    let name = short(name, NAME_BYTES);
    Some(format!("{name} (pid {pid}) waits for input {on}{secret}: answer with write_stdin"))
}

/// What it runs, on one line.
pub(super) fn command(process: &Process) -> String {
    let words = process.command.as_ref().map(|words| words.join(" "));
    let text = process.shell.clone().or(words).unwrap_or_default();
    short(&text, COMMAND_BYTES)
}

/// One line, not longer than this.
pub(super) fn short(text: &str, most: usize) -> String {
    let line: String =
        text.chars().take(most * 2).map(|it| if it.is_control() { ' ' } else { it }).collect();
    let line = line.trim();
    if line.len() <= most && text.len() <= most * 2 {
        return line.to_owned();
    }
    format!("{}…", &line[..line.floor_char_boundary(most)])
}

pub(super) fn age(process: &Process) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    seconds(now.saturating_sub(Duration::from_nanos(process.started_unix_ns)))
}

/// `0.31 s`, `12 s`, `3 min 5 s`, `2 h 4 min`.
pub(super) fn seconds(time: Duration) -> String {
    let whole = time.as_secs();
    match whole {
        0..10 => format!("{:.2} s", time.as_secs_f64()),
        10..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

fn status(status: &Status) -> String {
    match status {
        Status::Exited { code } => format!("exited with code {code}"),
        Status::Signalled { name, core_dumped: false, .. } => format!("ended by {name}"),
        Status::Signalled { name, core_dumped: true, .. } => {
            format!("ended by {name} (core dumped)")
        }
        Status::Lost { why, running_pid } => {
            let runs = running_pid.map(|pid| format!("; it may still run as pid {pid}"));
            format!("exit status unknown: {}{}", short(why, 200), runs.unwrap_or_default())
        }
    }
}

fn cause(cause: &Cause) -> Option<String> {
    let killed = |escalated: bool| if escalated { ", and it had to be killed" } else { "" };
    Some(match cause {
        Cause::Own => return None,
        Cause::TimedOut { which: TimeoutKind::Wall, escalated } => {
            format!("stopped because its timeout passed{}", killed(*escalated))
        }
        Cause::TimedOut { which: TimeoutKind::Idle, escalated } => {
            format!("stopped because it wrote nothing for its idle timeout{}", killed(*escalated))
        }
        Cause::Stopped { verb: StopVerb::Stop, escalated } => {
            format!("stopped on request{}", killed(*escalated))
        }
        Cause::Stopped { verb: StopVerb::Close, escalated } => {
            format!("stopped because the server shut down{}", killed(*escalated))
        }
        Cause::Stopped { verb: StopVerb::Disconnect, escalated } => {
            format!("stopped because its clients were gone{}", killed(*escalated))
        }
        Cause::Limit { which, escalated } => {
            format!("stopped by its {} limit{}", which.as_str(), killed(*escalated))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_to_two_places() {
        for (ms, want) in [
            (5, "0.01 s"),
            (9_990, "9.99 s"),
            (59_900, "59 s"),
            (65_000, "1 min 5 s"),
            (7_500_000, "2 h 5 min"),
        ] {
            assert_eq!(seconds(Duration::from_millis(ms)), want);
        }
    }

    #[test]
    fn a_command_is_one_short_line() {
        assert_eq!(short("a\nb\tc", 20), "a b c");
        assert_eq!(short("ééééé", 4), "éé…");
        assert!(short(&"x".repeat(10_000), 120).len() < 130);
    }
}
