//! `lastbyte stop`: the end of whole trees, and what is left of them.

use std::time::Duration;

use lastbyte_client::Client;
use lastbyte_client::wire::{
    Ending, Outcome, Reach, Receipt, Status, StopManyRequest, StopPolicy, StopProof,
};
use lastbyte_engine::Signal;

use crate::colour::{Tone, paint};
use crate::exit_code::help::{self, Code};
use crate::select_args::{self, IDS_HELP, SelectArgs, Which, called};
use crate::{client_error, exit_code, format, print, status_line, units};

/// Stop processes and everything they started, and print what is left
///
/// Sends a signal, then KILL after the grace period. Also stops what an ended process left running. A
/// second stop does not wait for the grace period of the first. The exit code is 1 if anything is left.
///
/// The last line says how this is known: `proved by` the kernel, which knows what is in a cgroup, or
/// `searched`, if the server has no cgroups (see `lastbyte doctor`).
///
/// Several processes are stopped at the same time, with a line for each. A selection leaves out ended
/// processes that left nothing running; if it matches nothing, that is a success.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    #[arg(value_name = "ID", help = IDS_HELP)]
    ids: Vec<String>,

    /// Send this signal first [default: the one given to `start`, else TERM]
    #[arg(long, allow_hyphen_values = true)]
    signal: Option<Signal>,

    /// Kill what is left after this long; 0s kills at once [default: the one given to `start`, else 5s]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration_or_zero, allow_hyphen_values = true)]
    grace: Option<Duration>,

    /// Print the answer as JSON; one line for each of several processes
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    select: SelectArgs,
}

fn exit_codes() -> String {
    let left = (Code::NOT_MET, "something is left running");
    help::list([help::SUCCESS, left, help::INVALID_ARGS_OR_SETTINGS, help::NO_PROCESS])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let which = args.select.which(&args.ids)?;
    let client = args.select.server.client().await?;
    let policy = StopPolicy {
        signal: args.signal.map(units::signal_text),
        grace_ms: args.grace.map(units::ms),
    };
    let stop = (policy != StopPolicy::default()).then_some(policy);
    let request = StopManyRequest { select: which.selection(), stop };
    let text = args.status_text(&client, &which);
    let answer = status_line::during_with(text, client.stop_many(&request)).await?;
    if which.is_one() {
        return print_one(&select_args::only(answer)?, args.json);
    }
    if answer.processes.is_empty() {
        args.select.say_none_runs();
    }
    let code = select_args::print_each(&answer, args.json, in_words)?;
    let mut proofs = answer.processes.iter().filter_map(|outcome| outcome.proof.as_ref());
    let all_gone = proofs.all(|proof| proof.left.is_empty());
    Ok(if code == 0 && !all_gone { exit_code::NOT_MET } else { code })
}

impl Args {
    /// What the status line says after this long: which process is stopped, and when it is killed.
    async fn status_text(&self, client: &Client, which: &Which) -> impl Fn(Duration) -> String {
        let receipt = match which {
            Which::One(id) => client.receipt(id).await.ok(),
            Which::Several(_) => None,
        };
        let (who, command, own_grace) = match &receipt {
            Some(Receipt { process, stop, .. }) => {
                let who = called(&process.id, process.name.as_deref()).to_owned();
                (who, format!(": {}", format::command(process)), stop.grace_ms)
            }
            None => (self.select.in_words(&self.ids), String::new(), None),
        };
        let grace = self.grace.or(own_grace.map(Duration::from_millis));
        move |waited| format!("stopping {who} ({}){command}", stage(grace, waited))
    }
}

/// How far a stop is after this long.
fn stage(grace: Option<Duration>, waited: Duration) -> String {
    let seconds = waited.as_secs();
    match grace {
        Some(grace) if waited < grace => {
            let left = (grace - waited).as_secs_f64().ceil();
            format!("KILL in {}", format::in_largest_unit(Duration::from_secs_f64(left)))
        }
        Some(_) => format!("sent KILL, waiting for the end, {seconds}s"),
        None => format!("{seconds}s"),
    }
}

fn print_one(outcome: &Outcome, json: bool) -> anyhow::Result<u8> {
    let proof = outcome.proof.as_ref();
    let proof = proof.ok_or_else(|| client_error::unexpected("no proof of the stop"))?;
    print::answer(json, proof, |proof| already_ended(outcome) + &page(proof))?;
    Ok(if proof.left.is_empty() { 0 } else { exit_code::NOT_MET })
}

/// So that the stop is not taken for what ended it.
fn already_ended(outcome: &Outcome) -> String {
    let Some(ending) = &outcome.ended_before else { return String::new() };
    let called = called(&outcome.id, outcome.name.as_deref());
    match &ending.status {
        // It may have run on until this stop.
        Status::Lost { .. } => format!("{called}: {}\n", format::ending(ending)),
        Status::Exited { .. } | Status::Signalled { .. } => {
            format!("{called} {}\n", had_ended(ending))
        }
    }
}

fn had_ended(ending: &Ending) -> String {
    format!("had already ended: {}", format::ending(ending))
}

/// On one line.
fn in_words(outcome: &Outcome) -> String {
    let Some(proof) = &outcome.proof else { return String::new() };
    let gone = format::count(proof.gone.len() as u64, "process", "processes");
    let stopped = match (&outcome.ended_before, proof.gone.len()) {
        (Some(ending), 0) => had_ended(ending),
        (Some(ending), _) => format!("{}; stopped {gone} that it left", had_ended(ending)),
        (None, _) => format!("stopped {gone}"),
    };
    let left = match (proof.left.len(), proof.proved) {
        (0, true) => "none left".to_owned(),
        (0, false) => "none found left".to_owned(),
        _ => paint(Some(Tone::Failed), &format!("left running: {}", listed(&proof.left, proof))),
    };
    format!("{stopped}, {left}")
}

/// With names, as far as they are known.
fn listed(pids: &[i32], proof: &StopProof) -> String {
    if pids.is_empty() {
        return "none".to_owned();
    }
    let named = |pid: &i32| match proof.names.get(pid) {
        Some(name) => format::name_and_pid(name, *pid),
        None => format!("pid {pid}"),
    };
    pids.iter().map(named).collect::<Vec<_>>().join(", ")
}

fn page(proof: &StopProof) -> String {
    let StopProof { signalled, gone, left, unattributed, .. } = proof;
    let listed = |pids: &[i32]| listed(pids, proof);
    let mut page = row("signalled", None, &listed(signalled)) + &row("gone", None, &listed(gone));
    page += &match (&left[..], proof.proved) {
        ([], false) => row("left", Some(Tone::Good), "none found"),
        ([], true) => row("left", Some(Tone::Good), "none"),
        (left, _) => row("left", Some(Tone::Failed), &listed(left)),
    };
    if !unattributed.is_empty() {
        let why = "may belong to another process, so not stopped";
        page += &row("unclear", Some(Tone::Pending), &format!("{}: {why}", listed(unattributed)));
    }
    let (name, basis) = basis(proof);
    page + &row(name, None, basis)
}

fn row(name: &str, tone: Option<Tone>, text: &str) -> String {
    let name = paint(Some(Tone::Dim), &format!("{name:9}"));
    format!("{name}  {}\n", paint(tone, text))
}

/// What the answer rests on.
fn basis(proof: &StopProof) -> (&'static str, &'static str) {
    match (proof.proved, proof.reach) {
        (true, _) => ("proved by", "its cgroup"),
        (false, Reach::Leaf) => ("searched", "its cgroup and all processes"),
        (false, Reach::Scan) => ("searched", "all processes"),
        (false, Reach::Group) => ("searched", "its process group only"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(left: &[i32], unattributed: &[i32], (reach, proved): (Reach, bool), want: &str) {
        let (left, unattributed) = (left.to_vec(), unattributed.to_vec());
        let (signalled, gone, names) =
            (vec![7], vec![7], [(7, "cat".into()), (9, "a\nb".into())].into());
        let proof = StopProof { signalled, gone, left, unattributed, names, reach, proved };
        assert_eq!(
            page(&proof),
            format!("signalled  cat (pid 7)\ngone       cat (pid 7)\n{want}\n")
        );
    }

    #[test]
    fn the_status_line_says_when_a_process_is_killed() {
        let after = |grace: Option<u64>, waited| {
            stage(grace.map(Duration::from_millis), Duration::from_secs(waited))
        };
        assert_eq!(after(Some(5000), 1), "KILL in 4s");
        assert_eq!(after(Some(1500), 1), "KILL in 1s");
        assert_eq!(after(Some(5000), 5), "sent KILL, waiting for the end, 5s");
        assert_eq!(after(None, 3), "3s");
    }

    #[test]
    fn a_search_is_not_called_a_proof() {
        check(&[], &[], (Reach::Leaf, true), "left       none\nproved by  its cgroup");
        check(&[], &[], (Reach::Scan, false), "left       none found\nsearched   all processes");
        let both = "left       none found\nsearched   its cgroup and all processes";
        check(&[], &[], (Reach::Leaf, false), both);
        let unclear = "left       pid 8, a\\nb (pid 9)\n\
             unclear    a\\nb (pid 9): may belong to another process, so not stopped\n\
             searched   all processes";
        check(&[8, 9], &[9], (Reach::Scan, false), unclear);
    }
}
