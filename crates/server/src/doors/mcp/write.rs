//! `write_stdin`: input for a process, and what it answers.

use std::time::Duration;

use lastbyte_engine::{Process, Snapshot};
use lastbyte_wire::{CreateLinkRequest, WriteQuery};
use tokio::time::{Instant, timeout_at};

use super::args::Args;
use super::call::{Answer, Call};
use super::reply::Budget;
use super::tools::{LONGEST_WAIT_MS, USUAL_WRITE_YIELD_MS};
use crate::from_wire::invalid;
use crate::verbs::{links, write};

/// Output that pauses for this long is an answer.
const QUIET: Duration = Duration::from_millis(200);

pub(super) async fn write_stdin(call: &Call, args: &Args) -> Answer {
    let process = call.find(&args.process("process_id")?)?;
    if args.flag("hand_over")? {
        return hand_over(call, args, &process).await;
    }
    let budget = Budget::new(args.number("max_output_tokens")?);
    let patience = args.number("yield_time_ms")?.unwrap_or(USUAL_WRITE_YIELD_MS);
    let deadline = Instant::now() + Duration::from_millis(patience.min(LONGEST_WAIT_MS));
    let before = process.snapshot().extent.len;
    let from = args.number("offset")?.unwrap_or(before);
    let mut lead = Vec::new();
    let chars = args.text("chars")?.unwrap_or_default();
    let (keys, eof) = (args.texts("keys")?, args.flag("eof")?);
    if !chars.is_empty() || !keys.is_empty() || eof {
        let bytes = write::with_keys(&process, chars.as_bytes().to_vec(), keys).await?;
        let count = bytes.len();
        let query = WriteQuery { offset: None, keys: None, close: eof.then_some(true) };
        write::write(&process, bytes, &query).await?;
        let closed = if eof { " and closed its input" } else { "" };
        lead.push(format!("wrote {count} bytes{closed}"));
    }
    let _permit = call.app().begin_wait()?;
    let answered = until_answered(&process, before, deadline);
    let snapshot = call.until(std::slice::from_ref(&process), answered).await?;
    lead.push(format!("shown: output from byte {} on", from.min(snapshot.extent.len)));
    call.evidence(&process, snapshot, from, (budget, lead)).await
}

/// A link with which a person types into the process.
async fn hand_over(call: &Call, args: &Args, process: &Process) -> Answer {
    if ["chars", "keys", "eof"].iter().any(|name| args.has(name)) {
        return Err(invalid("`hand_over` goes without `chars`, `keys` and `eof`").into());
    }
    let id = process.id().to_string();
    let request =
        CreateLinkRequest { process: Some(id.clone()), once: Some(true), expires_in_ms: None };
    let url = links::create(call.app(), &request).await?.url;
    Ok(vec![format!(
        "give this link to the person, who opens it in a browser on this machine and types there: {url}\nIt \
         works once, within 5 minutes. What is typed as a secret is not shown to you and not kept.\nnext: \
         wait {{\"process_ids\":[\"{id}\"],\"until\":\"hand_over\"}}"
    )])
}

/// Until it has written something past this length and pauses, or has ended.
async fn until_answered(process: &Process, before: u64, deadline: Instant) -> Snapshot {
    let mut seen = before;
    let mut until = deadline;
    loop {
        let more = |now: &Snapshot| now.extent.len > seen || now.ending().is_some();
        match timeout_at(until, process.wait_for(more)).await {
            Ok(snapshot) if snapshot.ending().is_none() && snapshot.log_open => {
                seen = snapshot.extent.len;
                until = deadline.min(Instant::now() + QUIET);
            }
            Ok(snapshot) => return snapshot,
            Err(_) => return process.snapshot(),
        }
    }
}
