//! `list_processes`: enough to go on with, for somebody who has forgotten everything else.

use lastbyte_wire::{ListQuery, Phase, Process};

use super::args::Args;
use super::call::{Answer, Call};
use super::facts;
use super::reply::Budget;
use crate::verbs::list;

/// What is kept of a budget for the lines after the list.
const LAST_LINES: usize = 420;
/// How much of a directory is shown.
const DIRECTORY_BYTES: usize = 100;

pub(super) async fn list_processes(call: &Call, args: &Args) -> Answer {
    let budget = Budget::new(args.number("max_output_tokens")?);
    let query =
        ListQuery { limit: Some(ListQuery::MOST), survivors: Some(true), ..ListQuery::default() };
    let listed = list::list(call.app(), &query).await?;
    let survived = listed.survived.unwrap_or_default();
    let (ended, running): (Vec<_>, Vec<_>) =
        listed.processes.iter().partition(|process| process.phase == Phase::Ended);
    let mut lines = call.notes();
    lines.push(format!("{} running, {} ended", running.len(), ended.len()));
    let mut used: usize = lines.iter().map(|line| line.len() + 1).sum();
    let all: Vec<_> = running.iter().chain(&ended).collect();
    for (nth, process) in all.iter().enumerate() {
        let entry = entry(process, survived.contains(&process.id));
        used += entry.len() + 1;
        if used + LAST_LINES > budget.bytes() {
            lines.push(format!("and {} more, which are not shown", all.len() - nth));
            break;
        }
        lines.push(entry);
    }
    if all.is_empty() {
        lines.push("next: exec_command starts a process".into());
    } else {
        lines.push(
            "next: wait {\"process_ids\":[ID]} waits for the end of a running one; read_output \
             {\"process_id\":ID} shows output, search_output searches it; stop_process \
             {\"process_id\":ID} stops one"
                .into(),
        );
    }
    Ok(vec![lines.join("\n")])
}

fn entry(process: &Process, survived: bool) -> String {
    let left = if survived { "; it has left processes running" } else { "" };
    format!(
        "{}{left}\n  command: {}\n  started {} ago in {}; {}",
        facts::headline(process),
        facts::command(process),
        facts::age(process),
        facts::short(&process.cwd, DIRECTORY_BYTES),
        facts::output(process),
    )
}
