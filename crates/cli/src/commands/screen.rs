//! `lastbyte screen`: what a terminal shows that has read a process's output.

use lastbyte_client::wire::{Content, Output, OutputQuery, Screen, Tty, View};
use rustix::stdio::stdout;

use crate::exit_code::help::{self, Code};
use crate::process_args::ProcessArgs;
use crate::{colour, print, status_line, units};

/// Print the screen of a process: what a terminal shows that has read its output
///
/// For programs that draw their screen, like editors and progress bars. The size is that of the process's terminal, or
/// 24x80 if it has none. At most the last 16 MiB of the output are read.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// Show the screen at this byte of the output, instead of its end
    #[arg(long, value_name = "CURSOR", value_parser = units::parse_whole::<u64>, allow_hyphen_values = true)]
    at: Option<u64>,

    /// Show it on a terminal of this size, like 24x80
    #[arg(long, value_name = "ROWSxCOLS", value_parser = units::parse_tty)]
    size: Option<Tty>,

    /// Include what processes left running by it write after its end
    #[arg(long)]
    late: bool,

    /// Print the server's answer as JSON, with cursor, title and colours
    #[arg(long)]
    json: bool,
}

fn exit_codes() -> String {
    help::list([(Code::OK, "the screen was printed"), help::NO_PROCESS])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (client, id) = args.process.find_in_history().await?;
    let has_colours = colour::is_on(stdout());
    let query = OutputQuery {
        view: Some(View::Screen),
        at: args.at,
        rows: args.size.map(|size| size.rows),
        cols: args.size.map(|size| size.cols),
        ansi: (args.json || has_colours).then_some(true),
        late: Some(args.late),
        ..OutputQuery::default()
    };
    let output = status_line::during("reading the output", client.output(&id, &query)).await?;
    print::answer(args.json, &output, |output| page(output, has_colours))?;
    if !args.json && output.from > 0 {
        print::message(format_args!(
            "made from the output past byte {}: settings of the terminal from before may be missing",
            output.from
        ));
    }
    Ok(0)
}

/// The rows, without the empty ones at the end.
fn page(output: &Output, has_colours: bool) -> String {
    let Content::Screen { screen } = &output.content else { return String::new() };
    let Screen { lines, ansi_lines, .. } = screen;
    let shown = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    match ansi_lines.as_ref().filter(|_| has_colours) {
        Some(lines) => lines.iter().take(shown).map(|line| format!("{line}\x1b[0m\n")).collect(),
        None => lines.iter().take(shown).map(|line| format!("{line}\n")).collect(),
    }
}
