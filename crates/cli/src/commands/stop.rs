//! `lastbyte stop`: the end of a whole tree, and the proof of it.

use std::time::Duration;

use lastbyte_client::wire::{Process, Reach, Status, StopPolicy, StopProof, StopRequest};
use lastbyte_engine::Signal;

use crate::exit_code::help::{self, Code};
use crate::process_args::ProcessArgs;
use crate::{duration, exit_code, in_words, process_id, tell};

/// Stop a process with all it has started, and prove it
///
/// A signal first, KILL after the grace. Also ends what an ended process has left. A second stop
/// does not wait out the grace of the first. The exit code is 1 when something is left.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// The first signal; that of the start unless given, which is TERM unless given
    #[arg(long, allow_hyphen_values = true)]
    signal: Option<Signal>,

    /// Kill what is left after this long; 0s kills at once
    #[arg(long, value_name = "TIME", value_parser = duration::parse_or_zero, allow_hyphen_values = true)]
    grace: Option<Duration>,

    /// Write the proof as JSON
    #[arg(long)]
    json: bool,
}

fn exit_codes() -> String {
    let left = (Code::Is(exit_code::NOT_MET), "something is left");
    help::list([help::DONE, left, help::UNUSABLE, help::NO_PROCESS])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (client, id) = args.process.find().await?;
    let policy = StopPolicy {
        signal: args.signal.map(|signal| signal.to_string()),
        grace_ms: args.grace.map(duration::ms),
    };
    let asked = policy != StopPolicy::default();
    // What is wrong with it, the stop says.
    let before = match args.json {
        true => None,
        false => client.show(&id).await.ok(),
    };
    let proof = client.stop(&id, &StopRequest { stop: asked.then_some(policy) }).await?;
    match args.json {
        true => tell::json_result(&proof)?,
        false => tell::result(already_ended(before.as_ref()) + &page(&proof))?,
    }
    Ok(match proof.left.is_empty() {
        true => 0,
        false => exit_code::NOT_MET,
    })
}

/// For whoever thinks that the stop has ended it.
fn already_ended(before: Option<&Process>) -> String {
    match before {
        Some(Process { id, ending: Some(ending), .. }) => {
            let id = process_id::short(id);
            match &ending.status {
                // It may have run on until this stop.
                Status::Lost { why } => {
                    let why = in_words::one_line(why);
                    format!("{id}: how it ended, if it had, is not known: {why}\n")
                }
                Status::Exited { .. } | Status::Signalled { .. } => {
                    format!("{id} had already ended: {}\n", in_words::ending(ending))
                }
            }
        }
        Some(_) | None => String::new(),
    }
}

fn page(proof: &StopProof) -> String {
    let by = match proof.reach {
        Reach::Leaf => "its cgroup",
        Reach::Scan => "a look through all processes",
        Reach::Group => "its group alone",
    };
    let pids = |pids: &[i32]| match pids {
        [] => "nobody".to_owned(),
        pids => pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let StopProof { signalled, gone, left, .. } = proof;
    format!(
        "signalled  {}\ngone       {}\nleft       {}\nproved by  {by}\n",
        pids(signalled),
        pids(gone),
        pids(left)
    )
}
