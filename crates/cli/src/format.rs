//! A process in words, for people: what it runs, how old and how large it is, how it ended.

use std::sync::LazyLock;
use std::time::Duration;

use lastbyte_client::wire::{
    Cause, Ending, LimitKind, Process, Range, Sandbox, Status, StopVerb, TimeoutKind, Usage,
};
use regex::{Captures, Regex};
use serde::de::DeserializeOwned;

use crate::colour::{self, Tone};
use crate::{timestamp, usage};

/// As a shell would take it, on one line. A command does not get to write to the terminal.
pub(crate) fn command(process: &Process) -> String {
    command_line(process.shell.as_ref(), process.command.as_deref())
}

/// The same of a shell command, or of a program and its arguments.
pub(crate) fn command_line(shell: Option<&String>, command: Option<&[String]>) -> String {
    let text = match (shell, command) {
        (Some(shell), _) => shell.clone(),
        (None, Some(words)) => {
            words.iter().map(|word| usage::quoted(word)).collect::<Vec<_>>().join(" ")
        }
        (None, None) => String::new(),
    };
    one_line(&text)
}

/// `1 match` or `2 matches`.
pub(crate) fn count(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Says that a part of the output is missing.
pub(crate) fn dropped(range: &Range) -> String {
    let Range { start, end } = range;
    let (bytes, were) =
        (count(end - start, "byte", "bytes"), if end - start == 1 { "was" } else { "were" });
    format!("{bytes} ({start}..{end}) {were} dropped")
}

/// Says that there is output after the end, which was left out.
pub(crate) fn left_out_late(bytes: u64) -> String {
    let (were, them) = if bytes == 1 { ("was", "it") } else { ("were", "them") };
    let more = count(bytes, "more byte", "more bytes");
    format!("{more} {were} written after the end; use --late to see {them}")
}

/// How many bytes were written after the end.
pub(crate) fn late_bytes(process: &Process) -> u64 {
    let ending = process.ending.as_ref();
    ending.map_or(0, |ending| process.total.saturating_sub(ending.final_len))
}

/// On one line, with every character escaped that a terminal obeys or does not show.
pub(crate) fn one_line(text: &str) -> String {
    lines(text).replace('\n', "\\n")
}

/// The same for a text of several lines.
///
/// Escaped are control characters and those that take no space of their own but change what others
/// look like: they reorder them, join them, or hide a difference. These are Unicode's format
/// characters (category Cf), its separators of lines and paragraphs, and the variation selectors of
/// its last planes.
pub(crate) fn lines(text: &str) -> String {
    static UNSAFE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\x{e0000}-\x{e0fff}--\n]").expect("it is a pattern")
    });
    let escaped = |found: &Captures<'_>| found[0].escape_default().to_string();
    UNSAFE.replace_all(text, escaped).into_owned()
}

/// A process chooses its name; it does not get to write to the terminal.
pub(crate) fn name_and_pid(name: &str, pid: i32) -> String {
    format!("{} (pid {pid})", one_line(name))
}

/// Said of a process whose records are not on disk.
pub(crate) const NOT_RECORDED: &str =
    "no: the server cannot write to disk and loses this process if it is killed";

/// An option whose values are words of the API.
pub(crate) fn parse_word<T: DeserializeOwned>(text: &str, expected: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|_| format!("expected {expected}"))
}

/// The word of `--sandbox`; empty for none.
pub(crate) fn sandbox_kind(sandbox: &Sandbox) -> &'static str {
    match sandbox {
        Sandbox::FullAccess {} => "",
        Sandbox::External {} => "external",
        Sandbox::ReadOnly { .. } => "read-only",
        Sandbox::WorkspaceWrite { .. } => "workspace-write",
    }
}

/// All of a policy.
pub(crate) fn sandbox(sandbox: &Sandbox) -> String {
    match sandbox {
        Sandbox::FullAccess {} => "none: full access".into(),
        Sandbox::External {} => "none: external".into(),
        Sandbox::ReadOnly { network } => format!("read-only, {}", network_word(*network)),
        Sandbox::WorkspaceWrite {
            writable,
            protect,
            network,
            allow_startup_files,
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
            if *allow_startup_files {
                text.push_str("; startup files writable");
            }
            one_line(&format!("{text}; {}", network_word(*network)))
        }
    }
}

fn network_word(network: bool) -> &'static str {
    if network { "with network" } else { "no network" }
}

/// The status, and whose doing it was unless it was its own.
pub(crate) fn ending(ending: &Ending) -> String {
    let status = match &ending.status {
        Status::Exited { code } => format!("exit {code}"),
        Status::Signalled { name, core_dumped: false, .. } => name.clone(),
        Status::Signalled { name, core_dumped: true, .. } => format!("{name} (core dumped)"),
        Status::Lost { why, running_pid } => lost(is_lost(ending), why, *running_pid),
    };
    let text = match ending.cause.as_ref().and_then(cause) {
        _ if ending.sandbox_denied => format!("{status}, killed by the sandbox"),
        Some(cause) => format!("{status}, {cause}"),
        None => status,
    };
    if ending.oom_killed { format!("{text}, out of memory") } else { text }
}

/// The same for a table, which says elsewhere that it is lost.
pub(crate) fn ending_in_table(known: &Ending) -> String {
    match &known.status {
        Status::Lost { running_pid: Some(pid), .. } => format!("may run as pid {pid}"),
        Status::Lost { running_pid: None, .. } => "unknown".into(),
        Status::Exited { .. } | Status::Signalled { .. } => ending(known),
    }
}

/// Whether it is lost and a process with its pid still runs.
pub(crate) fn may_run(ending: &Ending) -> bool {
    matches!(ending.status, Status::Lost { running_pid: Some(_), .. })
}

/// Whether nobody saw the end, so that there may have been none.
pub(crate) fn is_lost(ending: &Ending) -> bool {
    ending.times.found_unix_ns.is_some()
}

fn lost(is_lost: bool, why: &str, running_pid: Option<i32>) -> String {
    let what = if is_lost { "lost" } else { "exit status unknown" };
    let runs = running_pid.map(|pid| format!("; it may still run as pid {pid}"));
    format!("{what}: {}{}", one_line(why), runs.unwrap_or_default())
}

fn cause(cause: &Cause) -> Option<&'static str> {
    match cause {
        Cause::Own => None,
        // If it had to be killed, the status is SIGKILL.
        Cause::TimedOut { which: TimeoutKind::Wall, .. } => Some("timed out"),
        Cause::TimedOut { which: TimeoutKind::Idle, .. } => Some("timed out (idle)"),
        Cause::Stopped { verb: StopVerb::Stop | StopVerb::Close, .. } => Some("stopped"),
        Cause::Stopped { verb: StopVerb::Disconnect, .. } => Some("stopped: no client left"),
        Cause::Limit { which, .. } => Some(match which {
            LimitKind::Memory => "memory limit",
            LimitKind::Cpus => "cpus limit",
            LimitKind::Pids => "pids limit",
            LimitKind::OpenFiles => "open files limit",
            LimitKind::FileSize => "file size limit",
            LimitKind::CpuTime => "cpu time limit",
        }),
    }
}

/// How long ago it started.
pub(crate) fn age(process: &Process) -> String {
    let age = timestamp::now().saturating_sub(process.started_unix_ns);
    in_largest_unit(Duration::from_nanos(age))
}

/// Without fractions.
pub(crate) fn in_largest_unit(age: Duration) -> String {
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

/// The time of processors that a leader and the children it waited for used.
pub(crate) fn cpu(usage: Usage) -> String {
    let seconds = |ns| Duration::from_nanos(ns).as_secs_f64();
    let (user, system) = (seconds(usage.user_ns), seconds(usage.system_ns));
    format!("{user:.3}s user, {system:.3}s system")
}

/// A text of a table, and what it means.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Option<Tone>,
}

impl Cell {
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone: Some(tone) }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, tone: None }
    }
}

/// Columns side by side; a line is cut where it would not fit into `width`.
pub(crate) fn table(heading: &[&str], rows: &[Vec<Cell>], width: Option<usize>) -> String {
    let heading = [heading.iter().map(|name| Cell::toned(*name, Tone::Dim)).collect::<Vec<_>>()];
    let rows = || heading.iter().chain(rows);
    let wide = |column: usize| rows().map(|row| row[column].text.chars().count()).max();
    let widths: Vec<usize> =
        (0..heading[0].len()).map(|column| wide(column).unwrap_or(0)).collect();
    rows().map(|row| table_line(row, &widths, width) + "\n").collect()
}

/// Cut before it is coloured: colours take no space.
fn table_line(row: &[Cell], widths: &[usize], width: Option<usize>) -> String {
    let full: usize = widths.iter().map(|width| width + 2).sum();
    let last = row.iter().rposition(|cell| !cell.text.is_empty());
    let used = last.map_or(0, |last| {
        widths[..last].iter().map(|width| width + 2).sum::<usize>() + row[last].text.chars().count()
    });
    let is_cut = width.is_some_and(|width| used > width);
    let mut left = if is_cut { width.unwrap_or(full).saturating_sub(1) } else { used };
    let mut line = String::new();
    for (cell, width) in row.iter().zip(widths) {
        let shown: String = cell.text.chars().take(left).collect();
        let spaces = (width + 2).min(left) - shown.chars().count();
        left -= (width + 2).min(left);
        line += &colour::paint(cell.tone, &shown);
        line += &" ".repeat(spaces);
    }
    if is_cut { line + "…" } else { line }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        for (seconds, want) in
            [(0, "0s"), (59, "59s"), (60, "1m"), (3_599, "59m"), (7_200, "2h"), (90_000, "1d")]
        {
            assert_eq!(in_largest_unit(Duration::from_secs(seconds)), want);
        }
    }

    #[test]
    fn an_ending_has_its_cause() {
        let killed = |cause: Value| {
            let known: Ending = serde_json::from_value(json!({
                "status": { "kind": "signalled", "signal": 9, "name": "SIGKILL", "core_dumped": false },
                "cause": cause, "closing": { "kind": "eof" }, "kept": { "kind": "whole" },
                "final_len": 0,
                "times": { "started_unix_ns": 0, "exited_unix_ns": 0, "ended_unix_ns": 0,
                           "ran_ns": 0, "drained_ns": 0 },
            }))
            .unwrap();
            let oom = Ending { oom_killed: true, ..known.clone() };
            assert_eq!(ending(&oom), format!("{}, out of memory", ending(&known)));
            ending(&known)
        };
        assert_eq!(killed(json!({ "kind": "own" })), "SIGKILL");
        for escalated in [false, true] {
            let timeout =
                |which| json!({ "kind": "timed_out", "which": which, "escalated": escalated });
            assert_eq!(killed(timeout("wall")), "SIGKILL, timed out");
            assert_eq!(killed(timeout("idle")), "SIGKILL, timed out (idle)");
            let stopped = json!({ "kind": "stopped", "verb": "stop", "escalated": escalated });
            assert_eq!(killed(stopped), "SIGKILL, stopped");
        }
    }

    #[test]
    fn a_workspace_is_told_with_all_that_belongs_to_it() {
        let workspace = |protect: &[&str], excluded: bool| Sandbox::WorkspaceWrite {
            writable: vec!["/w\n".into()],
            protect: protect.iter().map(|path| (*path).into()).collect(),
            network: excluded,
            allow_startup_files: false,
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

    #[test]
    fn what_reorders_or_hides_characters_is_escaped_and_letters_are_not() {
        let bidi = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\
                    \u{2066}\u{2067}\u{2068}\u{2069}";
        let others = "\u{ad}\u{200b}\u{200d}\u{2028}\u{2060}\u{feff}\u{e0041}";
        for c in bidi.chars().chain(others.chars()) {
            assert_eq!(one_line(&format!("a{c}b")), format!("a\\u{{{:x}}}b", u32::from(c)));
        }
        let text = "e\u{301} ü שלום नमस्ते 漢字 ✓ 🙂";
        assert_eq!(one_line(text), text);
        assert_eq!(lines("one\n\ttwo\u{202e}"), "one\n\\ttwo\\u{202e}");
    }

    fn rows() -> [Vec<Cell>; 3] {
        let row = |cells: [&str; 2]| cells.map(|cell| Cell::from(cell.to_owned())).to_vec();
        [row(["a", "make"]), row(["bcd", "sleep 100"]), row(["e", ""])]
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        assert_eq!(table(&["ID", "C"], &rows(), None), "ID   C\na    make\nbcd  sleep 100\ne\n");
    }

    #[test]
    fn what_does_not_fit_is_cut_and_shown_to_be() {
        assert_eq!(table(&["ID", "C"], &rows(), Some(10)), "ID   C\na    make\nbcd  slee…\ne\n");
    }
}
