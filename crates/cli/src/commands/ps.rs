//! `lastbyte ps`: the processes that the server knows.

mod watch;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lastbyte_client::wire::{ListAnswer, ListQuery, Phase, Process};

use crate::exit_code::help::{self, Code};
use crate::server_args::ServerArgs;
use crate::table::table;
use crate::{duration, in_words, process_id, tell, terminal};

/// List the processes that the server knows, newest first
///
/// An id is shown by its last eight characters, which every command takes for it. On a terminal
/// the command is cut to the width of the line; into a pipe it is written out.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    /// Only those that are running, draining or ended
    #[arg(long, value_parser = parse_phase)]
    phase: Option<Phase>,

    /// Only those of this session
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    /// Only those with this label
    #[arg(long, value_name = "NAME=VALUE")]
    label: Option<String>,

    /// At most so many; 100 unless given
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,

    /// Write them as JSON, a process to a line
    #[arg(long)]
    json: bool,

    /// Draw the list again whenever something happens, until it is interrupted; on a terminal
    #[arg(long, conflicts_with = "json")]
    watch: bool,

    /// With --watch: draw it at least this often
    #[arg(long, value_name = "TIME", requires = "watch", default_value = "1s", value_parser = duration::parse)]
    interval: Duration,

    #[command(flatten)]
    server: ServerArgs,
}

fn exit_codes() -> String {
    let watched = (Code::OfSignal, "--watch was ended by signal N: 130 for Ctrl-C");
    help::list([help::DONE, help::UNUSABLE, help::NO_SERVER, watched])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    if args.watch {
        return watch::watch(args).await;
    }
    let page = args.server.client().await?.list(&args.query()).await?;
    if args.json {
        for process in &page.processes {
            tell::json_result(process)?;
        }
    } else {
        tell::result(listing(&page))?;
    }
    if page.next.is_some() {
        let count = page.processes.len();
        tell::line(format_args!("these are the newest {count}; --limit takes up to 1000"));
    }
    Ok(0)
}

impl Args {
    fn query(&self) -> ListQuery {
        ListQuery {
            phase: self.phase,
            session: self.session.clone(),
            label: self.label.clone(),
            before: None,
            limit: self.limit,
        }
    }
}

/// The table, as wide as the terminal.
fn listing(page: &ListAnswer) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let rows: Vec<_> = page.processes.iter().map(|process| row(process, now)).collect();
    let heading = ["ID", "AGE", "PHASE", "ENDING", "SIZE", "SANDBOX", "COMMAND"];
    table(heading, &rows, terminal::width_of_stdout())
}

fn row(process: &Process, now: Duration) -> [String; 7] {
    let age = now.saturating_sub(Duration::from_nanos(process.started_unix_ns));
    [
        process_id::short(&process.id).to_owned(),
        in_words::age(age),
        in_words::phase(process.phase).to_owned(),
        process.ending.as_ref().map(in_words::ending).unwrap_or_default(),
        in_words::size(process.total),
        in_words::sandbox_kind(&process.sandbox).to_owned(),
        in_words::command(process),
    ]
}

fn parse_phase(text: &str) -> Result<Phase, String> {
    match text {
        "running" => Ok(Phase::Running),
        "draining" => Ok(Phase::Draining),
        "ended" => Ok(Phase::Ended),
        _ => Err("a phase is running, draining or ended".into()),
    }
}
