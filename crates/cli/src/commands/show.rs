//! `lastbyte show`: all that is known of one process.

use std::io;

use lastbyte_client::wire::{Closing, Ending, Holder, Kept, Phase, Process, Range, Survivor};

use crate::process_args::ProcessArgs;
use crate::timestamp::Zone;
use crate::{exit_code, format, print};

/// Show everything known about a process
///
/// For a process that has ended, also shows what it left running: each `survivor` is a process it
/// started that still runs, and `held by` names one that kept the output open when it ended. If the
/// server was killed before the process ended, the phase is `lost`, and the process may still run.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_code::help::process_query_codes())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// Print the process as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    zone: Zone,
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (client, id) = args.process.find().await?;
    let process = client.show(&id).await?;
    if args.json {
        print::json_result(&process)?;
        return Ok(0);
    }
    let survivors = match process.phase {
        Phase::Running => Vec::new(),
        Phase::Draining | Phase::Ended | Phase::Lost => client.survivors(&id).await?,
    };
    print::result(page(&process, &survivors, args.zone))?;
    Ok(0)
}

/// A line of the page.
type Row = (&'static str, String);

fn page(process: &Process, survivors: &[Survivor], zone: Zone) -> String {
    let row = |name, text: &Option<String>| Some((name, format::one_line(text.as_ref()?)));
    let mut rows: Vec<Row> = vec![
        ("id", process.id.clone()),
        ("command", format::command(process)),
        ("directory", format::one_line(&process.cwd)),
        ("pid", process.pid.to_string()),
        ("sandbox", format::sandbox(&process.sandbox)),
        ("started", zone.seconds(process.started_unix_ns)),
    ];
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
    rows.push(("output", format!("{} bytes", process.total)));
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
    rows.iter().map(|(name, value)| format!("{name:10} {value}\n")).collect()
}

fn ending_rows(ending: &Ending) -> Vec<Row> {
    let mut rows = vec![("ending", format::ending(ending))];
    let seconds = ending.times.ran_ns.map(|ran| ran as f64 / 1e9);
    rows.extend(seconds.map(|seconds| ("ran", format!("{seconds:.3} s"))));
    if let Some(usage) = ending.usage {
        rows.push(("cpu", format::cpu(usage)));
        rows.extend(usage.peak_memory.map(|bytes| ("memory", format::size(bytes) + " at most")));
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

/// The number of the error that a cut output has.
const EPIPE: i32 = 32;

fn ranges(ranges: &[Range]) -> String {
    let range = |range: &Range| format!("{}-{}", range.start, range.end);
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}
