//! An ending as JSON: everything that is known of it. What is not known is absent.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lastbyte_engine::{
    About, Cause, Closing, Ending, Holders, Kept, Status, Timeout, Times, Usage, Verb,
};
use lastbyte_output::log::Dropped;
use serde::Serialize;

/// One process that has ended.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    id: String,
    pid: i32,
    cwd: String,
    status: StatusReport,
    cause: CauseReport,
    closing: ClosingReport,
    kept: KeptReport,
    /// The length of the output in bytes.
    final_len: u64,
    times: TimesReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageReport>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum StatusReport {
    Exited { code: i32 },
    Signalled { signal: i32, name: String, core_dumped: bool },
    Lost { why: String },
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum CauseReport {
    Own,
    TimedOut { which: &'static str, escalated: bool },
    Stopped { verb: &'static str, escalated: bool },
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum ClosingReport {
    Eof,
    Held {
        #[serde(skip_serializing_if = "Option::is_none")]
        holders: Option<Vec<HolderReport>>,
    },
}

#[derive(Debug, Serialize)]
struct HolderReport {
    pid: i32,
    name: String,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum KeptReport {
    Whole,
    Dropped { dropped: Vec<RangeReport> },
    Failed { errno: i32, at: u64, dropped: Vec<RangeReport> },
}

#[derive(Debug, Serialize)]
struct RangeReport {
    start: u64,
    end: u64,
}

/// `_unix_ns` since 1970, `_ns` by a clock that is never set.
#[derive(Debug, Serialize)]
struct TimesReport {
    started_unix_ns: u64,
    exited_unix_ns: u64,
    ended_unix_ns: u64,
    ran_ns: u64,
    drained_ns: u64,
}

#[derive(Debug, Serialize)]
struct UsageReport {
    user_ns: u64,
    system_ns: u64,
    /// In bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory: Option<u64>,
}

impl Report {
    pub(crate) fn new(about: &About, ending: &Ending) -> Self {
        Self {
            id: about.id.to_string(),
            pid: about.pid,
            cwd: about.cwd.to_string_lossy().into_owned(),
            status: status(ending.status),
            cause: cause(ending.cause),
            closing: closing(&ending.closing),
            kept: kept(&ending.kept),
            final_len: ending.final_len,
            times: times(&ending.times),
            usage: ending.usage.as_ref().map(usage),
        }
    }
}

fn status(status: Status) -> StatusReport {
    match status {
        Status::Exited(code) => StatusReport::Exited { code },
        Status::Signalled { signal, core_dumped } => StatusReport::Signalled {
            signal: signal.number(),
            name: signal.to_string(),
            core_dumped,
        },
        Status::Lost(why) => StatusReport::Lost { why: why.to_string() },
    }
}

fn cause(cause: Cause) -> CauseReport {
    match cause {
        Cause::Own => CauseReport::Own,
        Cause::TimedOut { which: Timeout::Wall, escalated } => {
            CauseReport::TimedOut { which: "wall", escalated }
        }
        Cause::TimedOut { which: Timeout::Idle, escalated } => {
            CauseReport::TimedOut { which: "idle", escalated }
        }
        Cause::Stopped { verb: Verb::Stop, escalated } => {
            CauseReport::Stopped { verb: "stop", escalated }
        }
        Cause::Stopped { verb: Verb::Close, escalated } => {
            CauseReport::Stopped { verb: "close", escalated }
        }
    }
}

fn closing(closing: &Closing) -> ClosingReport {
    match closing {
        Closing::Eof => ClosingReport::Eof,
        Closing::Held(Holders::Unknown) => ClosingReport::Held { holders: None },
        Closing::Held(Holders::Known(holders)) => {
            let holder = |holder: &lastbyte_engine::Holder| HolderReport {
                pid: holder.pid,
                name: holder.name.clone(),
            };
            ClosingReport::Held { holders: Some(holders.iter().map(holder).collect()) }
        }
    }
}

fn kept(kept: &Kept) -> KeptReport {
    match kept {
        Kept::Whole => KeptReport::Whole,
        Kept::Dropped(dropped) => KeptReport::Dropped { dropped: ranges(dropped) },
        Kept::Failed { failed, dropped } => KeptReport::Failed {
            errno: failed.errno.raw_os_error(),
            at: failed.at,
            dropped: ranges(dropped),
        },
    }
}

fn ranges(dropped: &Dropped) -> Vec<RangeReport> {
    let range = |range: &std::ops::Range<u64>| RangeReport { start: range.start, end: range.end };
    dropped.ranges().iter().map(range).collect()
}

fn times(times: &Times) -> TimesReport {
    TimesReport {
        started_unix_ns: unix_ns(times.started),
        exited_unix_ns: unix_ns(times.exited),
        ended_unix_ns: unix_ns(times.ended),
        ran_ns: ns(times.ran),
        drained_ns: ns(times.drained),
    }
}

fn usage(usage: &Usage) -> UsageReport {
    UsageReport {
        user_ns: ns(usage.user),
        system_ns: ns(usage.system),
        peak_memory: usage.peak_memory,
    }
}

fn unix_ns(time: SystemTime) -> u64 {
    ns(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
