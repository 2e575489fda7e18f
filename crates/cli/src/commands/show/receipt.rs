//! A receipt as a page for people.

use std::time::Duration;

use lastbyte_client::wire::{
    Ending, Enforcement, OnTimeout, OutputHash, ProcessLimits, Receipt, StopPolicy,
};

use super::{Row, lines, ranges, tone};
use crate::format;
use crate::timestamp::Zone;
use crate::units::duration_text;

pub(super) fn page(receipt: &Receipt, zone: Zone) -> String {
    let process = &receipt.process;
    let row = |name, text: &Option<String>| Some((name, format::one_line(text.as_ref()?)));
    let mut rows: Vec<Row> = vec![("id", process.id.clone())];
    rows.extend(row("name", &process.name));
    rows.extend(row("session", &process.session));
    rows.extend(row("key", &process.key));
    for (name, value) in &process.labels {
        rows.push(("label", format::one_line(&format!("{name}={value}"))));
    }
    rows.extend([
        ("command", format::command(process)),
        ("directory", format::one_line(&process.cwd)),
        ("variables", variables(&receipt.env_names)),
    ]);
    if !receipt.secret_names.is_empty() {
        rows.push(("secrets", format::one_line(&receipt.secret_names.join(", "))));
    }
    rows.extend([("sandbox", sandbox(receipt)), ("stop", stop(&receipt.stop))]);
    rows.extend(limits(receipt.limits.as_ref()));
    rows.extend(super::limit_rows(process));
    rows.push(("started", zone.milliseconds(process.started_unix_ns)));
    match &process.ending {
        Some(ending) => rows.extend(ending_rows(ending, zone)),
        None => rows.push(("ending", "none: it has not ended".into())),
    }
    rows.push(("sha256", hash(&receipt.output_hash)));
    lines(&rows, |name| tone(name, process))
}

fn variables(names: &[String]) -> String {
    if names.is_empty() { "as in the server".into() } else { format::one_line(&names.join(", ")) }
}

fn sandbox(receipt: &Receipt) -> String {
    let by = receipt.enforcement.map(|enforcement| match enforcement {
        Enforcement::Mounts => "mounts",
        Enforcement::UserMounts => "mounts in a user namespace",
        Enforcement::Landlock => "Landlock alone",
    });
    let by = by.map(|by| format!("; enforced by {by}")).unwrap_or_default();
    format::sandbox(&receipt.process.sandbox) + &by
}

fn stop(policy: &StopPolicy) -> String {
    let StopPolicy { signal, grace_ms } = policy;
    let signal = format::one_line(signal.as_deref().unwrap_or("TERM"));
    match grace_ms {
        Some(0) => "KILL".into(),
        Some(grace) => format!("{signal}, KILL after {}", time(*grace)),
        None => signal,
    }
}

fn limits(limits: Option<&ProcessLimits>) -> Vec<Row> {
    let Some(limits) = limits else {
        let why = "not known: an earlier version of the server started it";
        return vec![("limits", why.into())];
    };
    let then = match limits.on_timeout {
        OnTimeout::Stop => "then stopped",
        OnTimeout::Background => "then left running",
    };
    let timeout = |limit: Option<u64>| match limit {
        Some(limit) => format!("{}, {then}", time(limit)),
        None => "none".into(),
    };
    let mut rows = vec![
        ("timeout", timeout(limits.timeout_ms)),
        ("idle", timeout(limits.idle_timeout_ms)),
        ("quota", format::size(limits.quota_bytes)),
    ];
    if let Some(after) = limits.disconnect_timeout_ms {
        rows.push(("clients", format!("stopped {} after the last has gone", time(after))));
    }
    rows
}

fn ending_rows(ending: &Ending, zone: Zone) -> Vec<Row> {
    let times = &ending.times;
    let at = |name, time: Option<u64>| time.map(|time| (name, zone.milliseconds(time)));
    let mut rows = Vec::from_iter(at("exited", times.exited_unix_ns));
    rows.extend(at("ended", times.ended_unix_ns));
    rows.push(("ending", format::ending(ending)));
    rows.push(("output", format::count(ending.final_len, "byte", "bytes")));
    if ending.masked > 0 {
        rows.push(("masked", format::count(ending.masked, "secret", "secrets")));
    }
    rows
}

fn hash(hash: &OutputHash) -> String {
    match hash {
        OutputHash::Sha256 { hex, bytes: _ } => format::one_line(hex),
        OutputHash::NotEnded => "none: the process has not ended".into(),
        OutputHash::Dropped { dropped } => {
            format!("none: these bytes of the output were dropped: {}", ranges(dropped))
        }
        OutputHash::Incomplete { why } => format!("none: {}", format::one_line(why)),
    }
}

fn time(ms: u64) -> String {
    duration_text(Duration::from_millis(ms))
}
