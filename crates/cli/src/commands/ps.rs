//! `lastbyte ps`: the processes that the server knows.

mod watch;

use std::collections::HashSet;
use std::time::Duration;

use lastbyte_client::wire::{ListAnswer, ListQuery, Phase, Process};

use crate::colour::Tone;
use crate::exit_code::help::{self, Code};
use crate::format::Cell;
use crate::process_args::short_id;
use crate::select_args::{self, FilterArgs};
use crate::server_args::ServerArgs;
use crate::{autostart, format, print, stdio, units};

/// List the processes the server knows, newest first
///
/// Ids are shown by their last eight characters, which every command accepts. On a terminal, each line
/// is cut to the width of the window; in a pipe, commands are shown whole.
///
/// The phase is `running`, `draining` (the command has ended and the last of its output is being
/// read), `ended` or `lost` (the server was killed before the command ended, so nobody saw its end; it may
/// still run). An ending with `survivors` is that of a process that left others running: `show` lists
/// them, and `stop` stops them.
///
/// The columns NODE, NAME, SANDBOX, SESSION and LABELS are shown only if a process has one. In a narrow window,
/// SANDBOX, SESSION and LABELS are left out, one after the other as far as needed, to make room for COMMAND.
///
/// If no server is running, `ps`, `show`, `logs`, `search`, `wait` and `forget` start one, as `start` does,
/// to read what an earlier one has left. They start none if --socket or --server is given, or if --state
/// names a directory that no server has used.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    /// Show only processes in this phase: running, draining, ended or lost
    #[arg(long, value_parser = |text: &str| format::parse_word::<Phase>(text, "running, draining, ended or lost"))]
    #[arg(conflicts_with_all = ["running", "ended", "failed"])]
    phase: Option<Phase>,

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
    filter: FilterArgs,

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
    let page = autostart::client_of_history(&args.server).await?.list(&args.query()).await?;
    if args.json {
        for process in &page.processes {
            print::json_result(process)?;
        }
    } else {
        print::result(listing(&page))?;
    }
    say_who_is_silent(page.silent_nodes.as_deref());
    let options = args.conditions();
    if page.processes.is_empty() && !options.is_empty() {
        select_args::say_no_match(&options);
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

/// What the list lacks.
fn say_who_is_silent(nodes: Option<&[String]>) {
    let Some(nodes) = nodes else { return };
    let nodes = nodes.join(", ");
    print::message(format_args!("not listed, because these nodes do not answer: {nodes}"));
}

impl Args {
    /// The options that leave processes out, as they were given.
    fn conditions(&self) -> Vec<String> {
        let phase = self.phase.map(|phase| format!("--phase {}", phase.as_str()));
        self.filter.options().into_iter().chain(phase).collect()
    }

    fn query(&self) -> ListQuery {
        let filter = self.filter.query();
        ListQuery {
            phase: self.phase.or(filter.phase),
            limit: self.limit,
            survivors: (!self.json).then_some(true),
            ..filter
        }
    }
}

/// The table, as wide as the terminal. Columns in which no process has anything are left out.
fn listing(page: &ListAnswer) -> String {
    let survived = page.survived.iter().flatten().map(String::as_str).collect::<HashSet<_>>();
    let cells = |process| row(process, survived.contains(process.id.as_str()));
    let rows: Vec<_> = page.processes.iter().map(cells).collect();
    let is_shown = |column: usize| {
        !OPTIONAL.contains(&HEADING[column]) || rows.iter().any(|row| !row[column].text.is_empty())
    };
    let filled: Vec<usize> = (0..HEADING.len()).filter(|column| is_shown(*column)).collect();
    let width_of = |column: usize| {
        let texts = rows.iter().map(|row| row[column].text.chars().count());
        texts.chain([HEADING[column].len()]).max().unwrap_or(0)
    };
    let window = stdio::width_of_stdout();
    let shown = window.map_or_else(|| filled.clone(), |window| fit(&filled, width_of, window));
    let pick =
        |row: &[Cell; HEADING.len()]| shown.iter().map(|column| row[*column].clone()).collect();
    let rows: Vec<Vec<Cell>> = rows.iter().map(pick).collect();
    let heading: Vec<&str> = shown.iter().map(|column| HEADING[*column]).collect();
    format::table(&heading, &rows, window)
}

/// The columns for a window of this width. People know a process by its command, so columns
/// that `show` has too are left out if they leave too little space for it.
fn fit(columns: &[usize], width_of: impl Fn(usize) -> usize, window: usize) -> Vec<usize> {
    let mut columns = columns.to_vec();
    for name in ["SANDBOX", "SESSION", "LABELS"] {
        let width = |column: &usize| match HEADING[*column] {
            "COMMAND" => width_of(*column).min(LEAST_OF_COMMAND),
            _ => width_of(*column) + 2,
        };
        if columns.iter().map(width).sum::<usize>() > window {
            columns.retain(|column| HEADING[*column] != name);
        }
    }
    columns
}

const LEAST_OF_COMMAND: usize = 30;
const HEADING: [&str; 11] = [
    "ID", "NODE", "NAME", "AGE", "PHASE", "ENDING", "SIZE", "SANDBOX", "SESSION", "LABELS",
    "COMMAND",
];
const OPTIONAL: [&str; 5] = ["NODE", "NAME", "SANDBOX", "SESSION", "LABELS"];

fn row(process: &Process, has_survivors: bool) -> [Cell; HEADING.len()] {
    let ending = process.ending.as_ref().map(format::ending_in_table).unwrap_or_default();
    // A lost one that still runs says so itself.
    let is_marked = has_survivors && !process.ending.as_ref().is_some_and(format::may_run);
    let tone = process.ending.as_ref().map(Tone::of_ending);
    let ending = if is_marked {
        // Nothing failed, but something is still there.
        let tone = tone.filter(|tone| *tone == Tone::Failed).unwrap_or(Tone::Pending);
        Cell::toned(format!("{ending}, survivors"), tone)
    } else {
        Cell { text: ending, tone }
    };
    let labels = process.labels.iter().map(|(name, value)| format!("{name}={value}"));
    [
        short_id(&process.id).to_owned().into(),
        process.node.clone().unwrap_or_default().into(),
        process.name.clone().unwrap_or_default().into(),
        Cell::toned(format::age(process), Tone::Dim),
        Cell::toned(process.phase.as_str(), Tone::of_phase(process.phase)),
        ending,
        Cell::toned(format::size(process.total), Tone::Dim),
        format::sandbox_kind(&process.sandbox).to_owned().into(),
        process.session.as_deref().map(format::one_line).unwrap_or_default().into(),
        format::one_line(&labels.collect::<Vec<_>>().join(",")).into(),
        format::command(process).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_window_shows_the_command_instead_of_sandbox_session_and_labels() {
        let all: Vec<usize> = (0..HEADING.len()).collect();
        let widths = [8, 0, 8, 3, 7, 18, 6, 15, 8, 16, 50];
        let names = |window| {
            let columns = fit(&all, |column| widths[column], window);
            columns.into_iter().skip(7).map(|column| HEADING[column]).collect::<Vec<_>>()
        };
        assert_eq!(names(139), ["SANDBOX", "SESSION", "LABELS", "COMMAND"]);
        assert_eq!(names(138), ["SESSION", "LABELS", "COMMAND"]);
        assert_eq!(names(121), ["LABELS", "COMMAND"]);
        assert_eq!(names(111), ["COMMAND"]);
    }
}
