//! `lastbyte forget`: ended processes and their output, removed.

use lastbyte_client::wire::{ErrorCode, ForgetManyRequest, ManyAnswer};

use crate::exit_code::help;
use crate::process_args::short_id;
use crate::select_args::{self, IDS_HELP, SelectArgs};
use crate::{autostart, print, status_line};

/// Forget processes that have ended and delete their output
///
/// `lastbyte forget --ended` forgets all that have ended. If some cannot be forgotten, the others are,
/// and standard error says which and why. If a selection matches nothing, that is a success.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    #[arg(value_name = "ID", help = IDS_HELP)]
    ids: Vec<String>,

    /// Stop each first if anything of it is still running
    #[arg(long)]
    stop: bool,

    /// Print the id of the forgotten process as JSON; one line for each of several
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    select: SelectArgs,
}

fn exit_codes() -> String {
    help::list([help::SUCCESS, help::INVALID_ARGS_OR_SETTINGS, help::NO_PROCESS])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let which = args.select.which(&args.ids)?;
    let client = autostart::client_of_history(&args.select.server).await?;
    let stop = args.stop.then_some(true);
    let request = ForgetManyRequest { select: which.selection(), stop };
    let what = if args.stop { "stopping and forgetting" } else { "forgetting" };
    let answer = advised(status_line::during(what, client.forget_many(&request)).await?);
    if which.is_one() {
        let id = select_args::only(answer)?.id;
        if args.json {
            print::json_result(&serde_json::json!({ "forgotten": id }))?;
        }
        return Ok(0);
    }
    if answer.processes.is_empty() {
        args.select.say_none();
    }
    select_args::print_each(&answer, args.json, |_| "forgotten".into())
}

/// With the calls that would succeed.
fn advised(mut answer: ManyAnswer) -> ManyAnswer {
    for outcome in &mut answer.processes {
        let Some(error) = outcome.error.take() else { continue };
        let id = short_id(&outcome.id);
        let stop = format!("`lastbyte forget --stop {id}` stops it first");
        let show = format!("`lastbyte show {id}` says which process holds it, and {stop}");
        outcome.error = Some(match error.code {
            ErrorCode::NotEnded => error.hint(stop),
            ErrorCode::OutputHeld => error.hint(show),
            _ => error,
        });
    }
    answer
}
