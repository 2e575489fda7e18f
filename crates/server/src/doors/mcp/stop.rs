//! `stop_process`: stops a process with its tree, and proves it.

use std::collections::BTreeMap;
use std::time::Duration;

use lastbyte_wire::{Reach, StopPolicy, StopProof, StopRequest};
use tokio::time::timeout;

use super::args::Args;
use super::call::{Answer, Call};
use super::facts;
use super::tools::LONGEST_WAIT_MS;
use crate::to_wire;
use crate::verbs::control;

/// So that the answer comes while the client waits for it.
const LONGEST_GRACE_MS: u64 = 40_000;
/// After a stop, its last output is still to be stored.
const DRAIN: Duration = Duration::from_secs(2);
/// How many processes are named.
const NAMED: usize = 10;

pub(super) async fn stop_process(call: &Call, args: &Args) -> Answer {
    let process = call.find(&args.process("process_id")?)?;
    let had_ended = process.snapshot().ending().is_some();
    let policy = StopPolicy {
        signal: args.text("signal")?.map(str::to_owned),
        grace_ms: args.number("grace_ms")?.map(|ms| ms.min(LONGEST_GRACE_MS)),
    };
    let request = StopRequest { stop: Some(policy) };
    let longest = Duration::from_millis(LONGEST_WAIT_MS);
    let stopping = timeout(longest, control::stop(&process, &request));
    let proof = call.until(&[], stopping).await?;
    if !had_ended {
        // Whether it is there in time or not, the answer says so.
        _ = timeout(DRAIN, process.ended()).await;
    }
    let known = to_wire::process(&process, &process.snapshot());
    let mut lines = call.notes();
    lines.push(facts::headline(&known));
    if had_ended {
        lines.push("it had ended before".into());
    }
    match proof {
        Ok(proof) => lines.extend(in_words(&proof?)),
        Err(_) => lines.push("it is still being stopped; call stop_process again".into()),
    }
    lines.push(facts::output(&known));
    Ok(vec![lines.join("\n")])
}

/// What was signalled, what is gone, what is left, and how that is known.
fn in_words(proof: &StopProof) -> Vec<String> {
    let mut lines = Vec::new();
    let named = |pids: &[i32]| names(pids, &proof.names);
    if proof.signalled.is_empty() {
        lines.push("nothing of it was running".into());
    } else {
        lines.push(format!("signalled: {}", named(&proof.signalled)));
        lines.push(format!("gone: {}", named(&proof.gone)));
    }
    if !proof.left.is_empty() {
        lines.push(format!("left: {}", named(&proof.left)));
    }
    if !proof.unattributed.is_empty() {
        let what = named(&proof.unattributed);
        lines.push(format!("not signalled, because they may belong to another command: {what}"));
    }
    let how = match proof.reach {
        Reach::Leaf => "its cgroup",
        Reach::Scan => "a search of all processes",
        Reach::Group => "its process group alone",
    };
    lines.push(match (proof.left.is_empty(), proof.proved) {
        (true, true) => format!("proved: nothing is left in {how}"),
        (true, false) => format!("nothing was found any more, by {how}; that is no proof"),
        (false, _) => format!("something is left, by {how}"),
    });
    lines
}

fn names(pids: &[i32], names: &BTreeMap<i32, String>) -> String {
    let one = |pid: &i32| match names.get(pid) {
        Some(name) => format!("{} (pid {pid})", facts::short(name, 32)),
        None => format!("pid {pid}"),
    };
    let mut text = pids.iter().take(NAMED).map(one).collect::<Vec<_>>().join(", ");
    if pids.is_empty() {
        text.push_str("nothing");
    }
    if pids.len() > NAMED {
        text.push_str(&format!(" and {} more", pids.len() - NAMED));
    }
    text
}
