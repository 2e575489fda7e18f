//! `lastbyte ps`: the processes that the server knows.

mod watch;

use std::time::Duration;

use lastbyte_client::wire::{ListAnswer, ListQuery, Phase, Process};

use crate::exit_code::help::{self, Code};
use crate::process_args::short_id;
use crate::server_args::ServerArgs;
use crate::{format, print, stdio, units};

/// List the processes the server knows, newest first
///
/// Ids are shown by their last eight characters, which every command accepts. On a terminal, each line
/// is cut to the width of the window; in a pipe, commands are shown whole.
///
/// The phase is `running`, `draining` (the command has ended and the last of its output is being
/// read), `ended` or `lost` (the server was killed before the command ended, so nobody saw its end; it may
/// still run).
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    /// Show only processes in this phase: running, draining, ended or lost
    #[arg(long, value_parser = |text: &str| format::parse_word::<Phase>(text, "running, draining, ended or lost"))]
    phase: Option<Phase>,

    /// Show only processes of this session
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    /// Show only processes with this label; at most one
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_label)]
    label: Option<String>,

    /// Show at most COUNT processes, from 1 to 1000 [default: 100]
    #[arg(long, value_name = "COUNT", value_parser = |text: &str| units::parse_count(text, 1000))]
    limit: Option<u64>,

    /// Print JSON, one process per line
    #[arg(long)]
    json: bool,

    /// Redraw the list on every change until interrupted; needs a terminal
    #[arg(long, conflicts_with = "json")]
    watch: bool,

    /// With --watch: redraw at least this often
    #[arg(long, value_name = "TIME", requires = "watch", default_value = "1s", value_parser = units::parse_duration)]
    interval: Duration,

    #[command(flatten)]
    server: ServerArgs,
}

fn exit_codes() -> String {
    let watched = (Code::Signal, "--watch was ended by signal N: 130 for Ctrl-C");
    help::list([help::SUCCESS, help::INVALID_ARGS_OR_SETTINGS, help::NO_SERVER, watched])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    if args.watch {
        return watch::watch(args).await;
    }
    let page = args.server.client().await?.list(&args.query()).await?;
    if args.json {
        for process in &page.processes {
            print::json_result(process)?;
        }
    } else {
        print::result(listing(&page))?;
    }
    if page.next.is_some() {
        let newest = match page.processes.len() {
            1 => "newest is".into(),
            count => format!("newest {count} are"),
        };
        let more = "--limit shows more (at most 1000)";
        print::message(format_args!("only the {newest} shown; {more}"));
    }
    Ok(0)
}

impl Args {
    fn query(&self) -> ListQuery {
        ListQuery {
            phase: self.phase,
            session: self.session.clone(),
            label: self.label.clone(),
            limit: self.limit,
            ..ListQuery::default()
        }
    }
}

fn parse_label(text: &str) -> Result<String, String> {
    if text.contains('=') { Ok(text.to_owned()) } else { Err("expected NAME=VALUE".into()) }
}

/// The table, as wide as the terminal.
fn listing(page: &ListAnswer) -> String {
    let rows: Vec<_> = page.processes.iter().map(row).collect();
    let heading = ["ID", "AGE", "PHASE", "ENDING", "SIZE", "SANDBOX", "COMMAND"];
    format::table(heading, &rows, stdio::width_of_stdout())
}

fn row(process: &Process) -> [String; 7] {
    [
        short_id(&process.id).to_owned(),
        format::age(process),
        process.phase.as_str().to_owned(),
        process.ending.as_ref().map(format::ending_in_table).unwrap_or_default(),
        format::size(process.total),
        format::sandbox_kind(&process.sandbox).to_owned(),
        format::command(process),
    ]
}
