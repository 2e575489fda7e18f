//! `lastbyte show`: all that is known of processes; `receipt` is the page of `--receipt`.

mod receipt;

use std::io;
use std::time::Duration;

use lastbyte_client::Client;
use lastbyte_client::wire::{
    Cause, Closing, Ending, Holder, Kept, Keyboard, LimitEnforcement, Phase, Process, Range,
    Status, Survivor,
};

use crate::colour::{self, Tone};
use crate::select_args::{Found, IDS_HELP, SelectArgs, Which};
use crate::timestamp::Zone;
use crate::units::duration_text;
use crate::{autostart, exit_code, format, print};

/// Show everything known about processes
///
/// For a process that has ended, also shows what it left running: each `survivor` is a process it
/// started that still runs, and `held by` names one that kept the output open when it ended. If the
/// server was killed before the process ended, the phase is `lost`, and the process may still run.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_code::help::select_codes())]
pub(crate) struct Args {
    #[arg(value_name = "ID", help = IDS_HELP)]
    ids: Vec<String>,

    /// Print each process as a line of JSON
    #[arg(long)]
    json: bool,

    /// Show what was run, under which terms, and the SHA-256 of all its output
    ///
    /// The hash is that of the output of both streams in the order it arrived, without what is
    /// written after the ending. A process that has not ended has none, and neither has one whose
    /// output was dropped or may be incomplete. Variables are listed by name, never by value.
    #[arg(long)]
    receipt: bool,

    #[command(flatten)]
    zone: Zone,

    #[command(flatten)]
    select: SelectArgs,
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let which = args.select.which(&args.ids)?;
    let client = autostart::client_of_history(&args.select.server).await?;
    if let Which::One(id) = &which {
        if args.receipt {
            args.print_receipt(&client, id).await?;
        } else {
            args.print(&client, &client.show(id).await?).await?;
        }
        return Ok(0);
    }
    let Found { processes, code } = args.select.find(&client, &args.ids).await?;
    if processes.is_empty() && code == 0 {
        args.select.say_none();
        return Ok(exit_code::NONE_SELECTED);
    }
    for (nth, process) in processes.iter().enumerate() {
        if nth > 0 && !args.json {
            print::result("\n")?;
        }
        if args.receipt {
            args.print_receipt(&client, &process.id).await?;
        } else {
            args.print(&client, process).await?;
        }
    }
    Ok(code)
}

impl Args {
    async fn print(&self, client: &Client, process: &Process) -> anyhow::Result<()> {
        if self.json {
            return print::json_result(process);
        }
        let survivors = match process.phase {
            Phase::Running => Vec::new(),
            Phase::Draining | Phase::Ended | Phase::Lost => client.survivors(&process.id).await?,
        };
        print::result(page(process, &survivors, self.zone))
    }

    async fn print_receipt(&self, client: &Client, id: &str) -> anyhow::Result<()> {
        let receipt = client.receipt(id).await?;
        print::answer(self.json, &receipt, |receipt| receipt::page(receipt, self.zone))
    }
}

/// A line of the page.
type Row = (&'static str, String);

fn page(process: &Process, survivors: &[Survivor], zone: Zone) -> String {
    let row = |name, text: &Option<String>| Some((name, format::one_line(text.as_ref()?)));
    let mut rows: Vec<Row> = vec![("id", process.id.clone())];
    rows.extend(row("name", &process.name));
    rows.extend([
        ("command", format::command(process)),
        ("directory", format::one_line(&process.cwd)),
        ("pid", process.pid.to_string()),
        ("sandbox", format::sandbox(&process.sandbox)),
    ]);
    rows.extend(limit_rows(process));
    rows.extend([("started", zone.seconds(process.started_unix_ns))]);
    rows.extend(process.timed_out_at_unix_ns.map(|at| ("timed out", zone.seconds(at))));
    rows.push(("phase", process.phase.as_str().into()));
    rows.extend(process.ending.iter().flat_map(ending_rows));
    if process.recorded == Some(false) {
        rows.push(("recorded", format::NOT_RECORDED.into()));
    }
    if let Some(Range { start, end }) = process.stdin_uncertain {
        let why = "may not have arrived: the server was killed while typing it";
        rows.push(("input", format!("bytes {start} to {end}: {why}")));
    }
    if let Some(Keyboard { holder, since_unix_ns, secret }) = &process.keyboard {
        let secret = if *secret { ", typing a secret" } else { "" };
        let (holder, since) = (format::one_line(holder), zone.seconds(*since_unix_ns));
        rows.push(("keyboard", format!("with {holder} since {since}{secret}")));
    }
    rows.push(("output", output(process)));
    rows.extend(row("log file", &process.log_file));
    if !process.dropped.is_empty() {
        rows.push(("dropped", ranges(&process.dropped)));
    }
    rows.extend(row("session", &process.session));
    rows.extend(row("key", &process.key));
    for (name, value) in &process.labels {
        rows.push(("label", format::one_line(&format!("{name}={value}"))));
    }
    for survivor in survivors {
        let unclear = if survivor.unattributed { ", may belong to another process" } else { "" };
        rows.push(("survivor", format::name_and_pid(&survivor.name, survivor.pid) + unclear));
    }
    lines(&rows, |name| tone(name, process))
}

/// Each limit, and what enforces it.
pub(super) fn limit_rows(process: &Process) -> Vec<Row> {
    let (Some(limits), Some(by)) = (process.limits, process.limits_enforced) else { return vec![] };
    let cpu_time = limits.cpu_time_ms.map(|ms| duration_text(Duration::from_millis(ms)));
    let all = [
        ("memory", limits.memory_bytes.map(format::size), by.memory),
        ("cpus", limits.cpus.map(|cpus| cpus.count().to_string()), by.cpus),
        ("pids", limits.pids.map(|count| count.to_string()), by.pids),
        ("files", limits.open_files.map(|count| count.to_string()), by.open_files),
        ("file size", limits.file_size_bytes.map(format::size), by.file_size),
        ("cpu time", cpu_time, by.cpu_time),
    ];
    let row = |(name, limit, by): (_, Option<String>, Option<LimitEnforcement>)| {
        let by = match by? {
            LimitEnforcement::Kernel => "by the kernel",
            LimitEnforcement::Sampled => "by sampling",
        };
        Some(("limit", format!("{name} {}, {by}", limit?)))
    };
    all.into_iter().filter_map(row).collect()
}

fn output(process: &Process) -> String {
    let late = format::late_bytes(process);
    let output = format::count(process.total - late, "byte", "bytes");
    if late > 0 { format!("{output}, and {late} after the end") } else { output }
}

/// The rows below each other, coloured by what they mean.
fn lines(rows: &[Row], tone: impl Fn(&str) -> Option<Tone>) -> String {
    let line = |(name, value): &Row| {
        let dim_name = colour::paint(Some(Tone::Dim), &format!("{name:10}"));
        format!("{dim_name} {}\n", colour::paint(tone(name), value))
    };
    rows.iter().map(line).collect()
}

/// What the text of this row means.
fn tone(row: &str, process: &Process) -> Option<Tone> {
    match row {
        "phase" => Some(Tone::of_phase(process.phase)),
        "ending" => process.ending.as_ref().map(Tone::of_ending),
        "timed out" | "cut" | "disk" | "recorded" => Some(Tone::Failed),
        "survivor" | "held by" | "input" | "dropped" => Some(Tone::Pending),
        _ => None,
    }
}

fn ending_rows(ending: &Ending) -> Vec<Row> {
    let mut rows = vec![("ending", format::ending(ending))];
    let seconds = ending.times.ran_ns.map(|ran| ran as f64 / 1e9);
    rows.extend(seconds.map(|seconds| ("ran", format!("{seconds:.3} s"))));
    if let Some(usage) = ending.usage {
        let at_least = if may_lack_children(ending) { "at least " } else { "" };
        rows.push(("cpu", format!("{at_least}{}", format::cpu(usage))));
        rows.extend(usage.peak_memory.map(|bytes| ("memory", format::size(bytes) + " peak")));
    }
    match &ending.closing {
        None | Some(Closing::Eof) => {}
        Some(Closing::Held { holders: None }) => {
            rows.push(("held by", "an unknown process".into()))
        }
        Some(Closing::Held { holders: Some(holders) }) => {
            let name = |holder: &Holder| format::name_and_pid(&holder.name, holder.pid);
            rows.extend(holders.iter().map(|holder| ("held by", name(holder))));
        }
    }
    match &ending.kept {
        Some(Kept::Failed { errno: EPIPE, at, .. }) => {
            rows.push(("cut", format!("at byte {at}, in a crash of the server")));
        }
        Some(Kept::Failed { errno, at, .. }) => {
            let error = io::Error::from_raw_os_error(*errno);
            rows.push(("disk", format!("write failed at byte {at}, {error}")));
        }
        None | Some(Kept::Whole | Kept::Dropped { .. }) => {}
    }
    rows
}

/// Whether it was ended before it could wait for its children, whose processor time is then not counted.
fn may_lack_children(ending: &Ending) -> bool {
    let was_stopped = matches!(
        ending.cause,
        Some(Cause::TimedOut { .. } | Cause::Stopped { .. } | Cause::Limit { .. })
    );
    was_stopped || matches!(ending.status, Status::Signalled { .. })
}

/// The number of the error that a cut output has.
const EPIPE: i32 = 32;

fn ranges(ranges: &[Range]) -> String {
    let range = |range: &Range| format!("{}-{}", range.start, range.end);
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}
