//! A process in words, for people: what it runs, how old and how large it is, how it ended.

use std::time::Duration;

use lastbyte_client::wire::{Cause, Ending, Phase, Process, Sandbox, Status, Stream, TimeoutKind};

use crate::usage;

/// As a shell would take it, on one line. A command does not get to write to the terminal.
pub(crate) fn command(process: &Process) -> String {
    let text = match (&process.shell, &process.command) {
        (Some(shell), _) => shell.clone(),
        (None, Some(words)) => {
            words.iter().map(|word| usage::quoted(word)).collect::<Vec<_>>().join(" ")
        }
        (None, None) => String::new(),
    };
    one_line(&text)
}

/// Control characters written out.
pub(crate) fn one_line(text: &str) -> String {
    let shown = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// The name of a stream, as options have it.
pub(crate) fn parse_stream(text: &str) -> Result<Stream, String> {
    match text {
        "stdout" => Ok(Stream::Stdout),
        "stderr" => Ok(Stream::Stderr),
        _ => Err("a stream is stdout or stderr".into()),
    }
}

/// The word by which it is asked for; a dash for none.
pub(crate) fn sandbox_kind(sandbox: &Sandbox) -> &'static str {
    match sandbox {
        Sandbox::FullAccess {} => "-",
        Sandbox::External {} => "external",
        Sandbox::ReadOnly { .. } => "read-only",
        Sandbox::WorkspaceWrite { .. } => "workspace-write",
    }
}

/// All of a policy.
pub(crate) fn sandbox(sandbox: &Sandbox) -> String {
    match sandbox {
        Sandbox::FullAccess {} => "none: full access".into(),
        Sandbox::External {} => "none: left to an external one".into(),
        Sandbox::ReadOnly { network } => format!("read-only, {}", network_word(*network)),
        Sandbox::WorkspaceWrite {
            writable,
            protect,
            network,
            exclude_cwd,
            exclude_slash_tmp,
            exclude_tmpdir,
        } => {
            let usual = [
                (exclude_cwd, "its directory"),
                (exclude_slash_tmp, "/tmp"),
                (exclude_tmpdir, "$TMPDIR"),
            ];
            let usual = usual.into_iter().filter(|(excluded, _)| !**excluded);
            let roots = usual.map(|(_, root)| root.to_owned()).chain(writable.iter().cloned());
            let mut text = format!("workspace-write: {}", roots.collect::<Vec<_>>().join(", "));
            if !protect.is_empty() {
                text.push_str(&format!(", but not {}", protect.join(", ")));
            }
            one_line(&format!("{text}; {}", network_word(*network)))
        }
    }
}

fn network_word(network: bool) -> &'static str {
    match network {
        true => "with network",
        false => "no network",
    }
}

pub(crate) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Running => "running",
        Phase::Draining => "draining",
        Phase::Ended => "ended",
    }
}

/// The status, and whose doing it was unless it was its own.
pub(crate) fn ending(ending: &Ending) -> String {
    let status = match &ending.status {
        Status::Exited { code } => format!("exit {code}"),
        Status::Signalled { name, core_dumped: false, .. } => name.clone(),
        Status::Signalled { name, core_dumped: true, .. } => format!("{name} (core dumped)"),
        Status::Lost { .. } => "status lost".into(),
    };
    match cause(&ending.cause) {
        _ if ending.sandbox_denied => format!("{status}, by the sandbox"),
        Some(cause) => format!("{status}, {cause}"),
        None => status,
    }
}

fn cause(cause: &Cause) -> Option<&'static str> {
    match cause {
        Cause::Own => None,
        Cause::TimedOut { which: TimeoutKind::Wall, .. } => Some("timed out"),
        Cause::TimedOut { which: TimeoutKind::Idle, .. } => Some("idle too long"),
        Cause::Stopped { escalated: false, .. } => Some("stopped"),
        Cause::Stopped { escalated: true, .. } => Some("killed"),
    }
}

/// In the largest unit that fits, without fractions.
pub(crate) fn age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..=59 => format!("{seconds}s"),
        seconds @ 60..=3_599 => format!("{}m", seconds / 60),
        seconds @ 3_600..=86_399 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        for (seconds, want) in
            [(0, "0s"), (59, "59s"), (60, "1m"), (3_599, "59m"), (7_200, "2h"), (90_000, "1d")]
        {
            assert_eq!(age(Duration::from_secs(seconds)), want);
        }
    }

    #[test]
    fn a_workspace_is_told_with_all_that_belongs_to_it() {
        let workspace = |protect: &[&str], excluded: bool| Sandbox::WorkspaceWrite {
            writable: vec!["/w\n".into()],
            protect: protect.iter().map(|path| (*path).into()).collect(),
            network: excluded,
            exclude_cwd: excluded,
            exclude_slash_tmp: excluded,
            exclude_tmpdir: excluded,
        };
        let want = "workspace-write: its directory, /tmp, $TMPDIR, /w\\n, but not /w/p; no network";
        assert_eq!(sandbox(&workspace(&["/w/p"], false)), want);
        assert_eq!(sandbox(&workspace(&[], true)), "workspace-write: /w\\n; with network");
    }

    #[test]
    fn a_size_has_the_unit_that_fits() {
        for (bytes, want) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (64 << 20, "64.0 MiB"),
            (3 << 40, "3.0 TiB"),
            (5 << 50, "5120.0 TiB"),
        ] {
            assert_eq!(size(bytes), want);
        }
    }

    #[test]
    fn a_command_stays_on_its_line() {
        assert_eq!(one_line("a\nb\u{1b}[31m ü"), "a\\nb\\u{1b}[31m ü");
    }
}
