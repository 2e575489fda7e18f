//! `wait`: until processes have ended, or something else has happened.

use lastbyte_engine::Process;
use lastbyte_wire::{
    Error, HandOverEnd, InputUnknown, Met, Selection, Wait, WaitManyRequest, WaitOutcome,
};

use super::args::{Args, missing};
use super::call::{Answer, Call};
use super::facts;
use super::reply::Budget;
use super::tools::LONGEST_WAIT_MS;
use crate::from_wire::invalid;
use crate::verbs::wait;

const USUAL_SILENCE_MS: u64 = 2_000;
/// What is kept of a budget for a last line.
const LAST_LINE: usize = 80;

/// What to wait for, in the order of its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Exit,
    Pattern,
    Port,
    Silence,
    NeedsInput,
    HandOver,
}

pub(super) async fn wait(call: &Call, args: &Args) -> Answer {
    let budget = Budget::new(args.number("max_output_tokens")?);
    let ids = args.processes("process_ids")?;
    let processes = ids.iter().map(|id| call.find(id)).collect::<Result<Vec<Process>, Error>>()?;
    let (until, patience) = (until(args)?, patience(args)?);
    let request = WaitManyRequest {
        select: Selection {
            ids: Some(processes.iter().map(|process| process.id().to_string()).collect()),
            ..Selection::default()
        },
        wait: conditions(args, until, patience)?,
        any: Some(args.word("mode", &["all", "any"])? == Some(1)),
    };
    let met = call.until(&processes, wait::wait_many(call.app(), &request)).await??.processes;
    match (processes.as_slice(), met.as_slice()) {
        ([process, ..], [only]) => {
            let lead = vec![in_words(only, until, patience)];
            let from = args.number("offset")?.unwrap_or(0);
            call.evidence(process, process.snapshot(), from, (budget, lead)).await
        }
        (_, several) => Ok(vec![lines(call, several, (until, patience), budget)]),
    }
}

fn patience(args: &Args) -> Result<u64, Error> {
    Ok(args.number("timeout")?.unwrap_or(LONGEST_WAIT_MS).min(LONGEST_WAIT_MS))
}

/// What is said, or follows from the argument that only one of them takes.
fn until(args: &Args) -> Result<Until, Error> {
    const WORDS: [&str; 6] = ["exit", "pattern", "port", "silence", "needs_input", "hand_over"];
    let all = [
        Until::Exit,
        Until::Pattern,
        Until::Port,
        Until::Silence,
        Until::NeedsInput,
        Until::HandOver,
    ];
    Ok(match args.word("until", &WORDS)? {
        Some(nth) => all[nth],
        None if args.has("pattern") => Until::Pattern,
        None if args.has("port") => Until::Port,
        None if args.has("silence_ms") => Until::Silence,
        None => Until::Exit,
    })
}

/// The end of a process ends every wait, except for a port: what it has left running may open one.
fn conditions(args: &Args, until: Until, patience: u64) -> Result<Wait, Error> {
    let wait = Wait { exit: Some(true), timeout_ms: Some(patience), ..Wait::default() };
    Ok(match until {
        Until::Exit => wait,
        Until::Pattern => {
            let pattern = args.required_text("pattern")?.to_owned();
            Wait { pattern: Some(pattern), from: args.number("offset")?, ..wait }
        }
        Until::Port => {
            let port = args.number("port")?.ok_or_else(|| missing("port"))?;
            let port = u16::try_from(port).map_err(|_| invalid("`port` must be at most 65535"))?;
            Wait { port: Some(port), exit: None, ..wait }
        }
        Until::Silence => {
            let silence = args.number("silence_ms")?.unwrap_or(USUAL_SILENCE_MS);
            Wait { silence_ms: Some(silence), ..wait }
        }
        Until::NeedsInput => Wait { needs_input: Some(true), ..wait },
        Until::HandOver => Wait { hand_over: Some(true), ..wait },
    })
}

/// What has come of the wait for one process.
fn in_words(outcome: &WaitOutcome, until: Until, patience: u64) -> String {
    match &outcome.wait {
        None => "not waited for any longer: another process was first".into(),
        Some(Met::Exit) => match until {
            Until::Exit => "it has ended".into(),
            Until::Pattern => "it has ended, and no line matched the pattern".into(),
            Until::Port => "it has ended, and nothing of it listens on the port".into(),
            Until::Silence | Until::NeedsInput | Until::HandOver => "it has ended".into(),
        },
        Some(Met::Pattern { range, text }) => {
            format!("a line matched at byte {}: {}", range.start, facts::short(text, 200))
        }
        Some(Met::Port { port }) => format!("it listens on port {port}"),
        Some(Met::HandOver { how }) => match how {
            Some(HandOverEnd::Done) => "the person is done, and the keyboard is yours again".into(),
            Some(HandOverEnd::Left) => "the person left without saying that they are done".into(),
            Some(HandOverEnd::Expired) => "nobody used the link before it expired".into(),
            None => "its keyboard was not handed over".into(),
        },
        Some(Met::Silence) => "it is silent".into(),
        Some(Met::OutputPast { total }) => format!("it has written {total} bytes"),
        Some(met @ Met::NeedsInput { .. }) => facts::needs_input(met).unwrap_or_default(),
        Some(Met::Timeout { input_unknown }) => {
            let seconds = patience as f64 / 1000.0;
            let unknown = input_unknown.as_ref().map(|InputUnknown { pid, name }| {
                let name = facts::short(name, 32);
                format!("; {name} (pid {pid}) runs as another user, so it may be waiting for input")
            });
            format!(
                "still running, and what was waited for has not come in {seconds} s{}; call wait again",
                unknown.unwrap_or_default()
            )
        }
    }
}

/// Several processes: what each is, and which call shows more of it.
fn lines(
    call: &Call,
    outcomes: &[WaitOutcome],
    (until, patience): (Until, u64),
    budget: Budget,
) -> String {
    let mut lines = call.notes();
    let mut used: usize = lines.iter().map(|line| line.len() + 1).sum();
    for (nth, outcome) in outcomes.iter().enumerate() {
        let headline = facts::headline(&outcome.process);
        let line = format!(
            "{headline}; {}; {}",
            in_words(outcome, until, patience),
            facts::output(&outcome.process)
        );
        used += line.len() + 1;
        if used + LAST_LINE > budget.bytes() {
            lines.push(format!("and {} more, which are not shown", outcomes.len() - nth));
            return lines.join("\n");
        }
        lines.push(line);
    }
    lines.push("next: read_output {\"process_id\":\"…\"} shows the output of one".into());
    lines.join("\n")
}
