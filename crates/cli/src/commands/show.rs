//! `lastbyte show`: all that is known of one process.

use std::fmt::{Display, Write};
use std::io;

use lastbyte_client::wire::{Closing, Ending, Kept, Phase, Process, Range, Survivor};

use crate::process_args::ProcessArgs;
use crate::{exit_code, format, print, timestamp};

/// Show everything known about a process
///
/// For a process that has ended, also shows what it left running: each `survivor` is a process it
/// started that still runs, and `held by` names one that kept the output open when it ended.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_code::help::process_query_codes())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// Print the process as JSON
    #[arg(long)]
    json: bool,
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
        Phase::Running => None,
        Phase::Draining | Phase::Ended => Some(client.survivors(&id).await?),
    };
    print::result(page(&process, survivors.as_deref()))?;
    Ok(0)
}

fn page(process: &Process, survivors: Option<&[Survivor]>) -> String {
    let mut page = Page(String::new());
    page.line("id", &process.id);
    page.line("command", format::command(process));
    page.line("directory", format::one_line(&process.cwd));
    page.line("pid", process.pid);
    page.line("sandbox", format::sandbox(&process.sandbox));
    page.line("started", timestamp::seconds(process.started_unix_ns));
    if let Some(at) = process.timed_out_at_unix_ns {
        page.line("timed out", timestamp::seconds(at));
    }
    page.line("phase", format::phase(process.phase));
    if let Some(ending) = &process.ending {
        page.ending(ending);
    }
    if process.recorded == Some(false) {
        page.line("recorded", format::NOT_RECORDED);
    }
    page.line("output", format_args!("{} bytes", process.total));
    if let Some(path) = &process.log_file {
        page.line("log file", format::one_line(path));
    }
    if !process.dropped.is_empty() {
        page.line("dropped", ranges(&process.dropped));
    }
    let named = [("session", &process.session), ("key", &process.key)];
    for (name, value) in named.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
        page.line(name, format::one_line(value));
    }
    for (name, value) in &process.labels {
        page.line("label", format::one_line(&format!("{name}={value}")));
    }
    for survivor in survivors.unwrap_or_default() {
        let unclear = if survivor.unattributed { ", may belong to another process" } else { "" };
        page.line("survivor", format::name_and_pid(&survivor.name, survivor.pid) + unclear);
    }
    page.0
}

struct Page(String);

impl Page {
    fn line(&mut self, name: &str, value: impl Display) {
        // A string takes whatever is written to it.
        _ = writeln!(self.0, "{name:10} {value}");
    }

    fn ending(&mut self, ending: &Ending) {
        self.line("ending", format::ending(ending));
        let seconds = ending.times.ran_ns as f64 / 1e9;
        self.line("ran", format_args!("{seconds:.3} s"));
        match &ending.closing {
            Closing::Eof => {}
            Closing::Held { holders: None } => self.line("held by", "an unknown process"),
            Closing::Held { holders: Some(holders) } => {
                for holder in holders {
                    self.line("held by", format::name_and_pid(&holder.name, holder.pid));
                }
            }
        }
        match &ending.kept {
            Kept::Whole | Kept::Dropped { .. } => {}
            Kept::Failed { errno, at, .. } => {
                let error = io::Error::from_raw_os_error(*errno);
                self.line("disk", format_args!("write failed at byte {at}, {error}"));
            }
        }
    }
}

fn ranges(ranges: &[Range]) -> String {
    let range = |range: &Range| format!("{}-{}", range.start, range.end);
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}
