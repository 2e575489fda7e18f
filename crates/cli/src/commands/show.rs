//! `lastbyte show`: all that is known of one process.

use std::fmt::{Display, Write};

use lastbyte_client::wire::{Closing, Ending, Kept, Phase, Process, Range, Survivor};

use crate::process_args::ProcessArgs;
use crate::{exit_code, in_words, rfc3339, tell};

/// Show all that is known of a process
///
/// Of one that has ended it also says what it has left running.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_code::help::of_asking_about_one())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// Write the process as JSON
    #[arg(long)]
    json: bool,
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (client, id) = args.process.find().await?;
    let process = client.show(&id).await?;
    if args.json {
        tell::json_result(&process)?;
        return Ok(0);
    }
    let survivors = match process.phase {
        Phase::Running => None,
        Phase::Draining | Phase::Ended => Some(client.survivors(&id).await?),
    };
    tell::result(page(&process, survivors.as_deref()))?;
    Ok(0)
}

fn page(process: &Process, survivors: Option<&[Survivor]>) -> String {
    let mut page = Page(String::new());
    page.line("id", &process.id);
    page.line("command", in_words::command(process));
    page.line("directory", in_words::one_line(&process.cwd));
    page.line("pid", process.pid);
    page.line("sandbox", in_words::sandbox(&process.sandbox));
    page.line("started", rfc3339::seconds(process.started_unix_ns));
    if let Some(at) = process.timed_out_at_unix_ns {
        page.line("timed out", rfc3339::seconds(at));
    }
    page.line("phase", in_words::phase(process.phase));
    if let Some(ending) = &process.ending {
        page.ending(ending);
    }
    page.line("output", format_args!("{} bytes", process.total));
    if !process.dropped.is_empty() {
        page.line("dropped", ranges(&process.dropped));
    }
    let named = [("session", &process.session), ("key", &process.key)];
    for (name, value) in named.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
        page.line(name, in_words::one_line(value));
    }
    for (name, value) in &process.labels {
        page.line("label", in_words::one_line(&format!("{name}={value}")));
    }
    for survivor in survivors.unwrap_or_default() {
        page.line("survivor", who(survivor.pid, &survivor.name));
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
        self.line("ending", in_words::ending(ending));
        let seconds = ending.times.ran_ns as f64 / 1e9;
        self.line("ran", format_args!("{seconds:.3} s"));
        match &ending.closing {
            Closing::Eof => {}
            Closing::Held { holders: None } => self.line("held by", "somebody"),
            Closing::Held { holders: Some(holders) } => {
                for holder in holders {
                    self.line("held by", who(holder.pid, &holder.name));
                }
            }
        }
        match &ending.kept {
            Kept::Whole | Kept::Dropped { .. } => {}
            Kept::Failed { errno, at, .. } => {
                self.line("disk", format_args!("failed from byte {at} on, error {errno}"));
            }
        }
    }
}

fn who(pid: i32, name: &str) -> String {
    format!("{} (pid {pid})", in_words::one_line(name))
}

fn ranges(ranges: &[Range]) -> String {
    let range = |range: &Range| format!("{}-{}", range.start, range.end);
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}
