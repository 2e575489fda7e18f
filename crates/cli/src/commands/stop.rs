//! `lastbyte stop`: the end of a whole tree, and what is left of it.

use std::time::Duration;

use lastbyte_client::wire::{Process, Reach, Status, StopPolicy, StopProof, StopRequest};
use lastbyte_engine::Signal;

use crate::exit_code::help::{self, Code};
use crate::process_args::{ProcessArgs, short_id};
use crate::{exit_code, format, print, units};

/// Stop a process and everything it started, and print what is left
///
/// Sends a signal, then KILL after the grace period. Also stops what an ended process left running. A
/// second stop does not wait for the grace period of the first. The exit code is 1 if anything is left.
///
/// The last line says how this is known: `proved by` the kernel, which knows what is in a cgroup, or
/// `searched`, if the server has no cgroups (see `lastbyte doctor`).
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// Send this signal first [default: the one given to `start`, else TERM]
    #[arg(long, allow_hyphen_values = true)]
    signal: Option<Signal>,

    /// Kill what is left after this long; 0s kills at once [default: the one given to `start`, else 5s]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration_or_zero, allow_hyphen_values = true)]
    grace: Option<Duration>,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

fn exit_codes() -> String {
    let left = (Code::NOT_MET, "something is left running");
    help::list([help::SUCCESS, left, help::INVALID_ARGS_OR_SETTINGS, help::NO_PROCESS])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (client, id) = args.process.find().await?;
    let policy = StopPolicy {
        signal: args.signal.map(units::signal_text),
        grace_ms: args.grace.map(units::ms),
    };
    let asked = policy != StopPolicy::default();
    // What is wrong with it, the stop says.
    let before = if args.json { None } else { client.show(&id).await.ok() };
    let proof = client.stop(&id, &StopRequest { stop: asked.then_some(policy) }).await?;
    print::answer(args.json, &proof, |proof| already_ended(before.as_ref()) + &page(proof))?;
    Ok(if proof.left.is_empty() { 0 } else { exit_code::NOT_MET })
}

/// So that the stop is not taken for what ended it.
fn already_ended(before: Option<&Process>) -> String {
    let Some(Process { id, ending: Some(ending), .. }) = before else { return String::new() };
    let (id, text) = (short_id(id), format::ending(ending));
    match &ending.status {
        // It may have run on until this stop.
        Status::Lost { .. } => format!("{id}: {text}\n"),
        Status::Exited { .. } | Status::Signalled { .. } => {
            format!("{id} had already ended: {text}\n")
        }
    }
}

fn page(proof: &StopProof) -> String {
    let StopProof { signalled, gone, left, unattributed, .. } = proof;
    let pids = |pids: &[i32]| match pids {
        [] => "none".to_owned(),
        pids => pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let mut page = format!("signalled  {}\ngone       {}\n", pids(signalled), pids(gone));
    page += &match (&left[..], proof.proved) {
        ([], false) => "left       none found\n".to_owned(),
        (left, _) => format!("left       {}\n", pids(left)),
    };
    if !unattributed.is_empty() {
        let pids = pids(unattributed);
        page += &format!("unclear    {pids}: may belong to another process, so not stopped\n");
    }
    page + basis(proof)
}

/// What the answer rests on.
fn basis(proof: &StopProof) -> &'static str {
    match (proof.proved, proof.reach) {
        (true, _) => "proved by  its cgroup\n",
        (false, Reach::Leaf) => "searched   its cgroup and all processes\n",
        (false, Reach::Scan) => "searched   all processes\n",
        (false, Reach::Group) => "searched   its process group only\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(left: &[i32], unattributed: &[i32], (reach, proved): (Reach, bool), want: &str) {
        let (left, unattributed) = (left.to_vec(), unattributed.to_vec());
        let (signalled, gone) = (vec![7], vec![7]);
        let proof = StopProof { signalled, gone, left, unattributed, reach, proved };
        assert_eq!(page(&proof), format!("signalled  7\ngone       7\n{want}\n"));
    }

    #[test]
    fn a_search_is_not_called_a_proof() {
        check(&[], &[], (Reach::Leaf, true), "left       none\nproved by  its cgroup");
        check(&[], &[], (Reach::Scan, false), "left       none found\nsearched   all processes");
        let both = "left       none found\nsearched   its cgroup and all processes";
        check(&[], &[], (Reach::Leaf, false), both);
        let unclear = "left       8, 9\n\
             unclear    9: may belong to another process, so not stopped\n\
             searched   all processes";
        check(&[8, 9], &[9], (Reach::Scan, false), unclear);
    }
}
