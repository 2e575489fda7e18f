//! Every record reads back as it was written, and nothing else reads as one.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::time::SystemTime;

use lastbyte_output::log::{Dropped, Failed, Quota, ShortLog, Stamp, Stream};
use lastbyte_sys::pty::WindowSize;
use lastbyte_sys::{Errno, Signal};
use proptest::prelude::*;

use super::codec::Encoder;
use super::ending::encode_dropped;
use super::fingerprint::Fingerprint;
use super::record::{Launched, Record, VERSION};
use crate::Id;
use crate::launch::{
    EnforcedBy, Key, Limited, Limits, Name, OnDisconnect, OnQuota, OnTimeout, Program, Resource,
    Resources, Session, Spec, Streams, Timeouts,
};
use crate::process::ending::Ending;
use crate::process::ending::{
    Cause, Closing, End, Holder, Holders, Kept, LostWhy, Status, Timeout, Times, Usage,
};
use crate::sandbox::{Enforcement, Network, Sandbox, StartupFiles, Workspace};
use crate::stop::{StopPolicy, Verb};

fn id() -> impl Strategy<Value = Id> {
    any::<u128>().prop_map(Id::from_number)
}

fn os() -> impl Strategy<Value = OsString> {
    prop::collection::vec(any::<u8>(), 0..20).prop_map(OsString::from_vec)
}

fn time() -> impl Strategy<Value = SystemTime> {
    (0u64..1 << 33, 0u32..1_000_000_000)
        .prop_map(|(secs, nanos)| SystemTime::UNIX_EPOCH + Duration::new(secs, nanos))
}

fn signal() -> impl Strategy<Value = Signal> {
    (1..=64).prop_map(|number| Signal::from_number(number).unwrap())
}

fn dropped() -> impl Strategy<Value = Dropped> {
    prop::collection::vec((any::<u32>(), 0u64..999), 0..3).prop_map(|ranges| {
        Dropped::covering(ranges.into_iter().map(|(at, len)| at.into()..u64::from(at) + len))
    })
}

fn streams() -> impl Strategy<Value = Streams> {
    let size = (any::<u16>(), any::<u16>()).prop_map(|(rows, cols)| WindowSize { rows, cols });
    prop_oneof![Just(Streams::Merged), Just(Streams::Split), size.prop_map(Streams::Pty)]
}

/// With the enforcement, which is known only with them.
fn limits() -> impl Strategy<Value = Option<(Limits, Option<Enforcement>)>> {
    let timeout = || prop::option::of(any::<Duration>());
    let on_timeout = prop::sample::select(vec![OnTimeout::Stop, OnTimeout::Background]);
    let on_quota = prop::sample::select(vec![OnQuota::Drop, OnQuota::Block]);
    let enforcement = prop::option::of(prop::sample::select(Enforcement::ALL.to_vec()));
    let limits = (timeout(), timeout(), on_timeout, Quota::LEAST.., on_quota, enforcement);
    prop::option::of(limits.prop_map(|(wall, idle, on_timeout, quota, on_quota, enforcement)| {
        let timeouts = Timeouts { wall, idle };
        let quota = Quota::new(quota).unwrap();
        (Limits { timeouts, on_timeout, quota, on_quota }, enforcement)
    }))
}

fn launched() -> impl Strategy<Value = Launched> {
    let program = prop_oneof![
        prop::collection::vec(os(), 0..4).prop_map(Program::Argv),
        os().prop_map(Program::Shell),
    ];
    let key = prop::option::of((".*", any::<u128>()));
    let key = key.prop_map(|key| key.map(|(key, hash)| (Key(key), Fingerprint(hash))));
    let names = prop::collection::vec(os(), 0..4);
    let session = prop::option::of(".*".prop_map(Session));
    let name = prop::option::of(".*".prop_map(Name));
    let labels = prop::collection::btree_map(".*", ".*", 0..3);
    let stop = (signal(), any::<Duration>());
    let cgroup = prop::option::of(os().prop_map(PathBuf::from));
    let what = (id(), program, os(), names, session, key);
    let log = prop::option::of(any::<u64>());
    let secrets = prop::collection::vec(".*", 0..3);
    let terms = (limits(), prop::option::of(limited()), secrets, on_disconnect());
    (what, (name, labels), streams(), time(), (stop, terms), (cgroup, log), sandbox()).prop_map(
        |(what, (name, labels), streams, started, (stop, terms), (cgroup, log), sandbox)| {
            let (limits, resources, secrets, on_disconnect) = terms;
            let (id, program, cwd, env_names, session, key) = what;
            let stop = StopPolicy { signal: stop.0, grace: stop.1 };
            let cwd = cwd.into();
            let (key, fingerprint) = key.unzip();
            let (limits, enforcement) = limits.unzip();
            let spec = Spec {
                id,
                started,
                program,
                cwd,
                env_names,
                // A version that knows these writes limits, too.
                secret_names: limits.map(|_| secrets).unwrap_or_default(),
                resources: resources.filter(|_| limits.is_some()),
                on_disconnect: limits.map(|_| on_disconnect).unwrap_or_default(),
                streams,
                stop,
                sandbox,
                enforcement: enforcement.flatten(),
                limits,
                session,
                key,
                name,
                labels,
            };
            Launched { spec: Arc::new(spec), fingerprint, cgroup, log }
        },
    )
}

fn on_disconnect() -> impl Strategy<Value = OnDisconnect> {
    let stop = any::<Duration>().prop_map(|after| OnDisconnect::Stop { after });
    prop_oneof![Just(OnDisconnect::Keep), stop]
}

fn limited() -> impl Strategy<Value = Limited> {
    let limit = || prop::option::of(any::<u64>());
    let cpu_time = prop::option::of(any::<Duration>());
    let limits = (limit(), limit(), limit(), limit(), limit(), cpu_time, any::<bool>()).prop_map(
        |(memory, milli_cpus, pids, open_files, file_size, cpu_time, strict)| Resources {
            memory,
            milli_cpus,
            pids,
            open_files,
            file_size,
            cpu_time,
            strict,
        },
    );
    let by = prop::sample::select(vec![EnforcedBy::Kernel, EnforcedBy::Sampling]);
    let by = prop::collection::vec((resource(), by), 0..6);
    (limits, by).prop_map(|(limits, by)| Limited { limits, by })
}

fn resource() -> impl Strategy<Value = Resource> {
    prop::sample::select(Resource::ALL.to_vec())
}

fn sandbox() -> impl Strategy<Value = Sandbox> {
    let network = || prop::sample::select(vec![Network::Off, Network::On]);
    let paths = || prop::collection::vec(os().prop_map(PathBuf::from), 0..3);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let startup = prop::sample::select(vec![StartupFiles::Protected, StartupFiles::Writable]);
    let workspace = (flags, paths(), paths(), startup, network()).prop_map(
        |((cwd, slash_tmp, tmpdir), roots, protect, startup_files, network)| Workspace {
            cwd,
            roots,
            slash_tmp,
            tmpdir,
            protect,
            startup_files,
            network,
        },
    );
    prop_oneof![
        Just(Sandbox::FullAccess),
        Just(Sandbox::External),
        network().prop_map(|network| Sandbox::ReadOnly { network }),
        workspace.prop_map(Sandbox::WorkspaceWrite),
    ]
}

fn status() -> impl Strategy<Value = Status> {
    prop_oneof![
        any::<i32>().prop_map(Status::Exited),
        (signal(), any::<bool>())
            .prop_map(|(signal, core_dumped)| Status::Signalled { signal, core_dumped }),
        Just(Status::Lost(LostWhy::TakenByOthers)),
    ]
}

fn cause() -> impl Strategy<Value = Cause> {
    let times = prop::sample::select(vec![Timeout::Wall, Timeout::Idle]);
    let verbs = prop::sample::select(vec![Verb::Stop, Verb::Close, Verb::Disconnect]);
    prop_oneof![
        Just(Cause::Own),
        (times, any::<bool>()).prop_map(|(which, escalated)| Cause::TimedOut { which, escalated }),
        (verbs, any::<bool>()).prop_map(|(verb, escalated)| Cause::Stopped { verb, escalated }),
        (resource(), any::<bool>())
            .prop_map(|(which, escalated)| Cause::Limit { which, escalated }),
    ]
}

fn closing() -> impl Strategy<Value = Closing> {
    let holder = (any::<i32>(), ".*").prop_map(|(pid, name)| Holder { pid, name });
    prop_oneof![
        Just(Closing::Eof),
        Just(Closing::Held(Holders::Unknown)),
        prop::collection::vec(holder, 0..3)
            .prop_map(|holders| Closing::Held(Holders::Known(holders))),
    ]
}

fn kept() -> impl Strategy<Value = Kept> {
    prop_oneof![
        Just(Kept::Whole),
        dropped().prop_map(Kept::Dropped),
        (1..4096, any::<u64>(), dropped()).prop_map(|(errno, at, dropped)| Kept::Failed {
            failed: Failed { errno: Errno::from_raw_os_error(errno), at },
            dropped,
        }),
    ]
}

/// One that nobody saw.
fn lost() -> impl Strategy<Value = Ending> {
    let why = prop::sample::select(vec![LostWhy::OwnerGone, LostWhy::ServerGone]);
    (why, any::<u64>(), time(), time(), any::<Duration>()).prop_map(
        |(why, stored, started, found, after)| {
            Ending::lost(why, stored, Times { started, end: End::Unseen { found, after } })
        },
    )
}

fn seen() -> impl Strategy<Value = Ending> {
    let times = (time(), time(), time(), any::<Duration>(), any::<Duration>());
    let peak = prop::option::of(any::<u64>());
    let usage = (any::<Duration>(), any::<Duration>(), peak, any::<bool>(), any::<bool>());
    let usage = usage.prop_map(|(user, system, peak_memory, oom_killed, forks_refused)| Usage {
        user,
        system,
        peak_memory,
        oom_killed,
        forks_refused,
    });
    let usage = prop::option::of(usage);
    let lengths = (any::<u64>(), prop_oneof![Just(0), any::<u64>()]);
    (status(), cause(), closing(), kept(), lengths, times, usage).prop_map(
        |(status, cause, closing, kept, (final_len, masked), times, usage)| {
            let (started, exited, ended, ran, drained) = times;
            let times = Times { started, end: End::Seen { exited, ended, ran, drained } };
            Ending { status, cause, closing, kept, final_len, masked, times, usage }
        },
    )
}

fn short() -> impl Strategy<Value = ShortLog> {
    let stream = prop::sample::select(vec![Stream::Out, Stream::Err]);
    let stamp = (any::<u64>(), stream, any::<u64>()).prop_map(|(offset, stream, at_ms)| Stamp {
        offset,
        stream,
        at_ms,
    });
    (prop::collection::vec(any::<u8>(), 0..50), prop::collection::vec(stamp, 0..3))
        .prop_map(|(bytes, stamps)| ShortLog { bytes, stamps })
}

pub(super) fn record() -> impl Strategy<Value = Record> {
    prop_oneof![
        launched().prop_map(|launched| Record::Launched(Box::new(launched))),
        (id(), any::<i32>()).prop_map(|(id, pid)| Record::Started { id, pid }),
        id().prop_map(|id| Record::Failed { id }),
        (id(), prop_oneof![seen(), lost()], dropped(), prop::option::of(short())).prop_map(
            |(id, ending, dropped, short)| Record::Ended {
                id,
                ending: Box::new(ending),
                dropped,
                short
            }
        ),
        id().prop_map(|id| Record::Forgotten { id }),
        (id(), time()).prop_map(|(id, at)| Record::TimedOut { id, at }),
    ]
}

/// Earlier versions wrote a cause, a closing and what is kept for an end that nobody saw.
#[test]
fn an_unseen_ending_of_an_earlier_version_reads_as_one_that_claims_nothing() {
    let (id, started) = (Id::from_number(7), SystemTime::UNIX_EPOCH);
    let (found, after) = (started + Duration::from_secs(9), Duration::from_secs(9));
    let dropped = Dropped::covering(std::iter::once(3..5));
    let mut to = Encoder::default();
    [VERSION, 3].into_iter().for_each(|byte| to.u8(byte));
    to.u128(7);
    [2, 2].into_iter().for_each(|byte| to.u8(byte)); // lost: the server ended
    to.u8(0); // of its own
    to.u8(1); // held by somebody unknown
    to.u8(1); // of what was dropped, the list
    encode_dropped(&dropped, &mut to);
    to.u64(6);
    [started, found, found].into_iter().for_each(|time| to.time(time));
    [after, Duration::ZERO].into_iter().for_each(|time| to.duration(time));
    to.bool(false); // no usage
    encode_dropped(&dropped, &mut to);
    to.bool(false); // no short log
    let times = Times { started, end: End::Unseen { found, after } };
    let ending = Box::new(Ending::lost(LostWhy::ServerGone, 6, times));
    let want = Record::Ended { id, ending, dropped, short: None };
    assert_eq!(Record::decode(&to.bytes), Some(want));
}

proptest! {
    #[test]
    fn a_record_reads_back_as_it_was_written(record in record()) {
        let payload = record.encode();
        prop_assert_eq!(Record::decode(&payload), Some(record));
    }

    /// Nothing but the whole of a record is one, and no bytes make it panic.
    #[test]
    fn a_part_of_a_record_is_none(record in record(), more in any::<u8>()) {
        let mut payload = record.encode();
        for cut in 0..payload.len() {
            prop_assert_eq!(Record::decode(&payload[..cut]), None);
        }
        payload.push(more);
        prop_assert_eq!(Record::decode(&payload), None);
    }

    #[test]
    fn strange_bytes_are_no_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0u8..11) {
        bytes.splice(..0, [VERSION, kind]);
        _ = Record::decode(&bytes);
    }
}
