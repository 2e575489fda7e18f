//! Values of the engine as types of the API.

use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lastbyte_engine::{
    Cause, Closing, Delivery, End, Ending, EnforcedBy, Enforcement, Event, EventKind, Holders,
    JournalState, Kept, KeyboardHolder, Limits, Network, OnDisconnect, OnTimeout, Phase, PhaseKind,
    Process, Program, Reach, Resource, Resources, Retention, Sandbox, Snapshot, Spec, StartError,
    StartupFiles, Status, StopPolicy, StopProof, Streams, Subject, Survivor, Timeout, Times, Usage,
    Verb, Workspace,
};
use lastbyte_output::log::{self, Dropped};
use lastbyte_wire as wire;

use crate::scoped_key;

/// A process at the instant of this snapshot.
pub fn process(process: &Process, snapshot: &Snapshot) -> wire::Process {
    let spec = process.spec();
    let (command, shell) = program(&spec.program);
    wire::Process {
        id: spec.id.to_string(),
        node: None,
        pid: process.pid(),
        command,
        shell,
        cwd: spec.cwd.to_string_lossy().into_owned(),
        streams: match spec.streams {
            Streams::Merged => wire::Streams::Merged,
            Streams::Split => wire::Streams::Split,
            Streams::Pty(_) => wire::Streams::Tty,
        },
        sandbox: sandbox(&spec.sandbox),
        limits: spec.resources.as_ref().map(|limited| resources(&limited.limits)),
        limits_enforced: spec.resources.as_ref().map(|limited| enforced(&limited.by)),
        session: spec.session.as_ref().map(|session| session.0.clone()),
        key: spec.key.as_ref().map(|key| scoped_key::sent(key).to_owned()),
        name: spec.name.as_ref().map(|name| name.0.clone()),
        labels: spec.labels.clone(),
        started_unix_ns: unix_ns(spec.started),
        timed_out_at_unix_ns: snapshot.timed_out_at.map(unix_ns),
        phase: phase(&snapshot.phase),
        keyboard: process.keyboard().map(keyboard),
        stdin_uncertain: uncertain_input(process),
        total: snapshot.extent.len,
        dropped: dropped(&snapshot.extent.dropped),
        log_open: snapshot.log_open,
        log_file: process.log_file().map(|path| path.to_string_lossy().into_owned()),
        ending: snapshot.ending().map(|known| ending(known, process)),
        recorded: process.is_recorded(),
    }
}

pub fn keyboard(holder: KeyboardHolder) -> wire::Keyboard {
    let KeyboardHolder { name, since, secret, .. } = holder;
    wire::Keyboard { holder: name, since_unix_ns: unix_ns(since), secret }
}

fn uncertain_input(process: &Process) -> Option<wire::Range> {
    let (start, end) = process.stdin()?.borrow().uncertain?;
    Some(wire::Range { start, end })
}

pub fn sandbox(sandbox: &Sandbox) -> wire::Sandbox {
    match sandbox {
        Sandbox::FullAccess => wire::Sandbox::FullAccess {},
        Sandbox::External => wire::Sandbox::External {},
        Sandbox::ReadOnly { network } => {
            wire::Sandbox::ReadOnly { network: *network == Network::On }
        }
        Sandbox::WorkspaceWrite(known) => workspace(known),
    }
}

/// The words of a command, or the text of a shell command.
fn program(program: &Program) -> (Option<Vec<String>>, Option<String>) {
    let text = |text: &std::ffi::OsString| text.to_string_lossy().into_owned();
    match program {
        Program::Argv(argv) => (Some(argv.iter().map(text).collect()), None),
        Program::Shell(line) => (None, Some(text(line))),
    }
}

fn workspace(known: &Workspace) -> wire::Sandbox {
    let Workspace { cwd, roots, slash_tmp, tmpdir, protect, startup_files, network } = known;
    wire::Sandbox::WorkspaceWrite {
        writable: texts(roots),
        protect: texts(protect),
        network: *network == Network::On,
        allow_startup_files: *startup_files == StartupFiles::Writable,
        exclude_cwd: !cwd,
        exclude_slash_tmp: !slash_tmp,
        exclude_tmpdir: !tmpdir,
    }
}

fn texts(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

pub fn retention(retention: &Retention) -> wire::Retention {
    let Retention { at_least, at_most, per_session, in_all, bytes } = *retention;
    wire::Retention {
        at_least_ms: ms(at_least),
        at_most_ms: ms(at_most),
        per_session: per_session as u64,
        processes: in_all as u64,
        output_bytes: bytes,
    }
}

/// `None` where no journal is kept.
pub fn journal(state: Option<JournalState>) -> wire::JournalHealth {
    match state {
        None => wire::JournalHealth::Off,
        Some(JournalState { trouble: None, .. }) => wire::JournalHealth::Ok,
        Some(JournalState { trouble: Some(why), waiting_bytes: bytes, .. }) => {
            wire::JournalHealth::Waiting { why, bytes }
        }
    }
}

/// Why a command could not be started.
pub fn start_error(error: &StartError) -> wire::Error {
    crate::verbs::refusal::from_start(error)
}

pub fn phase(phase: &Phase) -> wire::Phase {
    match PhaseKind::from(phase) {
        PhaseKind::Running => wire::Phase::Running,
        PhaseKind::Draining => wire::Phase::Draining,
        PhaseKind::Ended => wire::Phase::Ended,
        PhaseKind::Lost => wire::Phase::Lost,
    }
}

/// The ending of this process.
pub fn ending(ending: &Ending, process: &Process) -> wire::Ending {
    let mut known = ending_at_the_time(ending, &process.spec().sandbox);
    if let wire::Status::Lost { running_pid, .. } = &mut known.status {
        *running_pid = process.runs_unseen();
    }
    known
}

/// As it was published.
fn ending_at_the_time(ending: &Ending, sandbox: &Sandbox) -> wire::Ending {
    wire::Ending {
        status: status(ending.status),
        cause: cause(ending.cause),
        closing: closing(&ending.closing),
        kept: kept(&ending.kept),
        final_len: ending.final_len,
        times: times(&ending.times),
        usage: ending.usage.as_ref().map(usage),
        sandbox_denied: sandbox.denied(ending.status),
        oom_killed: ending.usage.is_some_and(|usage| usage.oom_killed),
        limits_hit: limits_hit(ending),
        masked: ending.masked,
    }
}

fn status(status: Status) -> wire::Status {
    match status {
        Status::Exited(code) => wire::Status::Exited { code },
        Status::Signalled { signal, core_dumped } => wire::Status::Signalled {
            signal: signal.number(),
            name: signal.to_string(),
            core_dumped,
        },
        Status::Lost(why) => wire::Status::Lost { why: why.to_string(), running_pid: None },
    }
}

fn cause(cause: Cause) -> Option<wire::Cause> {
    Some(match cause {
        Cause::Unknown => return None,
        Cause::Own => wire::Cause::Own,
        Cause::TimedOut { which, escalated } => {
            wire::Cause::TimedOut { which: timeout(which), escalated }
        }
        Cause::Stopped { verb: Verb::Stop, escalated } => {
            wire::Cause::Stopped { verb: wire::StopVerb::Stop, escalated }
        }
        Cause::Stopped { verb: Verb::Close, escalated } => {
            wire::Cause::Stopped { verb: wire::StopVerb::Close, escalated }
        }
        Cause::Stopped { verb: Verb::Disconnect, escalated } => {
            wire::Cause::Stopped { verb: wire::StopVerb::Disconnect, escalated }
        }
        Cause::Limit { which, escalated } => {
            wire::Cause::Limit { which: limit_kind(which), escalated }
        }
    })
}

fn limits_hit(ending: &Ending) -> Vec<wire::LimitKind> {
    let ended_it = match ending.cause {
        Cause::Limit { which, .. } => Some(limit_kind(which)),
        Cause::Own | Cause::Unknown | Cause::TimedOut { .. } | Cause::Stopped { .. } => None,
    };
    let refused = ending.usage.is_some_and(|usage| usage.forks_refused);
    ended_it.into_iter().chain(refused.then_some(wire::LimitKind::Pids)).collect()
}

fn limit_kind(which: Resource) -> wire::LimitKind {
    match which {
        Resource::Memory => wire::LimitKind::Memory,
        Resource::Cpus => wire::LimitKind::Cpus,
        Resource::Pids => wire::LimitKind::Pids,
        Resource::OpenFiles => wire::LimitKind::OpenFiles,
        Resource::FileSize => wire::LimitKind::FileSize,
        Resource::CpuTime => wire::LimitKind::CpuTime,
    }
}

fn resources(limits: &Resources) -> wire::Limits {
    let Resources { memory, milli_cpus, pids, open_files, file_size, cpu_time, strict } = *limits;
    let thousandths = |milli: u64| u32::try_from(milli).unwrap_or(u32::MAX);
    wire::Limits {
        memory_bytes: memory,
        cpus: milli_cpus.map(|milli| wire::Cpus { thousandths: thousandths(milli) }),
        pids,
        open_files,
        file_size_bytes: file_size,
        cpu_time_ms: cpu_time.map(ms),
        strict,
    }
}

fn enforced(by: &[(Resource, EnforcedBy)]) -> wire::LimitsEnforced {
    let find = |which| {
        let (_, by) = by.iter().find(|(of, _)| *of == which)?;
        Some(match by {
            EnforcedBy::Kernel => wire::LimitEnforcement::Kernel,
            EnforcedBy::Sampling => wire::LimitEnforcement::Sampled,
        })
    };
    wire::LimitsEnforced {
        memory: find(Resource::Memory),
        cpus: find(Resource::Cpus),
        pids: find(Resource::Pids),
        open_files: find(Resource::OpenFiles),
        file_size: find(Resource::FileSize),
        cpu_time: find(Resource::CpuTime),
    }
}

fn timeout(which: Timeout) -> wire::TimeoutKind {
    match which {
        Timeout::Wall => wire::TimeoutKind::Wall,
        Timeout::Idle => wire::TimeoutKind::Idle,
    }
}

fn closing(closing: &Closing) -> Option<wire::Closing> {
    Some(match closing {
        Closing::Unknown => return None,
        Closing::Eof => wire::Closing::Eof,
        Closing::Held(Holders::Unknown) => wire::Closing::Held { holders: None },
        Closing::Held(Holders::Known(holders)) => {
            let holder = |holder: &lastbyte_engine::Holder| wire::Holder {
                pid: holder.pid,
                name: holder.name.clone(),
            };
            wire::Closing::Held { holders: Some(holders.iter().map(holder).collect()) }
        }
    })
}

fn kept(kept: &Kept) -> Option<wire::Kept> {
    Some(match kept {
        Kept::Unknown => return None,
        Kept::Whole => wire::Kept::Whole,
        Kept::Dropped(gone) => wire::Kept::Dropped { dropped: dropped(gone) },
        Kept::Failed { failed, dropped: gone } => wire::Kept::Failed {
            errno: failed.errno.raw_os_error(),
            at: failed.at,
            dropped: dropped(gone),
        },
    })
}

pub fn dropped(dropped: &Dropped) -> Vec<wire::Range> {
    dropped.ranges().iter().map(range).collect()
}

pub fn range(range: &Range<u64>) -> wire::Range {
    wire::Range { start: range.start, end: range.end }
}

pub fn stream(stream: log::Stream) -> wire::Stream {
    match stream {
        log::Stream::Out => wire::Stream::Stdout,
        log::Stream::Err => wire::Stream::Stderr,
    }
}

fn times(times: &Times) -> wire::Times {
    let none = wire::Times {
        started_unix_ns: unix_ns(times.started),
        exited_unix_ns: None,
        ended_unix_ns: None,
        found_unix_ns: None,
        ran_ns: None,
        drained_ns: None,
    };
    match times.end {
        End::Seen { exited, ended, ran, drained } => wire::Times {
            exited_unix_ns: Some(unix_ns(exited)),
            ended_unix_ns: Some(unix_ns(ended)),
            ran_ns: Some(ns(ran)),
            drained_ns: Some(ns(drained)),
            ..none
        },
        End::Unseen { found, after: _ } => {
            wire::Times { found_unix_ns: Some(unix_ns(found)), ..none }
        }
    }
}

fn usage(usage: &Usage) -> wire::Usage {
    wire::Usage {
        user_ns: ns(usage.user),
        system_ns: ns(usage.system),
        peak_memory: usage.peak_memory,
    }
}

pub fn stop_policy(policy: StopPolicy) -> wire::StopPolicy {
    let StopPolicy { signal, grace } = policy;
    let number = || signal.number().to_string();
    let signal = signal.name().map_or_else(number, str::to_owned);
    wire::StopPolicy { signal: Some(signal), grace_ms: Some(ms(grace)) }
}

/// `None` for a process that an earlier version started.
pub fn limits(spec: &Spec) -> Option<wire::ProcessLimits> {
    let Limits { timeouts, on_timeout, quota, on_quota: _ } = spec.limits?;
    Some(wire::ProcessLimits {
        timeout_ms: timeouts.wall.map(ms),
        idle_timeout_ms: timeouts.idle.map(ms),
        on_timeout: match on_timeout {
            OnTimeout::Stop => wire::OnTimeout::Stop,
            OnTimeout::Background => wire::OnTimeout::Background,
        },
        disconnect_timeout_ms: match spec.on_disconnect {
            OnDisconnect::Keep => None,
            OnDisconnect::Stop { after } => Some(ms(after)),
        },
        quota_bytes: quota.bytes(),
    })
}

pub fn enforcement(enforcement: Enforcement) -> wire::Enforcement {
    match enforcement {
        Enforcement::Mounts => wire::Enforcement::Mounts,
        Enforcement::UserMounts => wire::Enforcement::UserMounts,
        Enforcement::Landlock => wire::Enforcement::Landlock,
    }
}

pub fn stop_proof(proof: StopProof) -> wire::StopProof {
    let StopProof { signalled, gone, left, unattributed, names, reach: by, proved } = proof;
    wire::StopProof { signalled, gone, left, unattributed, names, reach: reach(by), proved }
}

pub fn reach(reach: Reach) -> wire::Reach {
    match reach {
        Reach::Cgroup => wire::Reach::Leaf,
        Reach::Scan => wire::Reach::Scan,
        Reach::Group => wire::Reach::Group,
    }
}

pub fn survivor(survivor: Survivor) -> wire::Survivor {
    let Survivor { pid, name, unattributed } = survivor;
    wire::Survivor { pid, name, unattributed }
}

pub fn delivered(delivery: Delivery) -> wire::Delivered {
    match delivery {
        Delivery::Group => wire::Delivered::Group,
        Delivery::Survivors(count) => wire::Delivered::Survivors { count: count as u64 },
        Delivery::Nobody => wire::Delivered::Nobody,
    }
}

pub fn event(event: &Event) -> wire::Event {
    let (command, shell) = match &event.kind {
        EventKind::Started(spec) => program(&spec.program),
        _ => (None, None),
    };
    let Subject { id, session, name, labels } = &*event.process;
    wire::Event {
        command,
        shell,
        process: id.to_string(),
        session: session.as_ref().map(|session| session.0.clone()),
        name: name.as_ref().map(|name| name.0.clone()),
        labels: labels.clone(),
        at_unix_ns: unix_ns(event.at),
        event: match &event.kind {
            EventKind::Started(_) => wire::EventKind::Started,
            EventKind::FirstOutput => wire::EventKind::FirstOutput,
            EventKind::TimedOut { which } => wire::EventKind::TimedOut { which: timeout(*which) },
            EventKind::Ended(spec, known) => {
                let ending = ending_at_the_time(known, &spec.sandbox);
                wire::EventKind::Ended { ending: Box::new(ending) }
            }
            EventKind::WorkspaceTouched(touches) => wire::EventKind::WorkspaceTouched {
                chats: touches.sessions.iter().map(|session| session.0.clone()).collect(),
                paths: touches.paths.iter().map(|path| path.display().to_string()).collect(),
            },
            EventKind::Forgotten => wire::EventKind::Forgotten,
        },
    }
}

/// Streams are told where they are kept apart.
pub fn stamp(stamp: log::Stamp, streams: Streams) -> wire::Stamp {
    wire::Stamp {
        offset: stamp.offset,
        at_unix_ns: ms_as_ns(stamp.at_ms),
        stream: match streams {
            Streams::Split => Some(stream(stamp.stream)),
            Streams::Merged | Streams::Pty(_) => None,
        },
    }
}

/// Milliseconds of unix time, as the log counts it.
pub fn ms_as_ns(unix_ms: u64) -> u64 {
    unix_ms.saturating_mul(1_000_000)
}

pub fn unix_ns(time: SystemTime) -> u64 {
    ns(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
