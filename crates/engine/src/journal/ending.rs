//! An ending as bytes, with what there is of the log.

use std::ops::Range;
use std::time::Duration;

use lastbyte_output::log::{Dropped, Failed, ShortLog, Stamp, Stream};
use lastbyte_sys::{Errno, Signal};

use super::codec::{Decoder, Encoder};
use super::resources::{decode_resource, encode_resource};
use crate::process::ending::{
    Cause, Closing, End, Ending, Holder, Holders, Kept, LostWhy, Status, Timeout, Times, Usage,
};
use crate::stop::Verb;

/// An ending that nobody saw has the layout of all others, with the time at which that was noticed
/// for its times and the first of everything else that it does not know. Its status tells it apart.
/// Earlier versions wrote the same and took it at its word.
/// The count of masked secrets is not in here: a record of another kind has it after all else.
pub(super) fn encode_ending(ending: &Ending, to: &mut Encoder) {
    let Ending { status, cause, closing, kept, final_len, masked: _, times, usage } = ending;
    encode_status(*status, to);
    encode_cause(*cause, to);
    encode_closing(closing, to);
    encode_kept(kept, to);
    to.u64(*final_len);
    let (exited, ended, ran, drained) = match &times.end {
        End::Seen { exited, ended, ran, drained } => (exited, ended, ran, drained),
        End::Unseen { found, after } => (found, found, after, &Duration::ZERO),
    };
    let started = &times.started;
    [started, exited, ended].into_iter().for_each(|time| to.time(*time));
    [ran, drained].into_iter().for_each(|time| to.duration(*time));
    encode_usage(usage.as_ref(), to);
}

pub(super) fn decode_ending(from: &mut Decoder<'_>) -> Option<Ending> {
    let status = decode_status(from)?;
    let (cause, closing) = (decode_cause(from)?, decode_closing(from)?);
    let (kept, final_len) = (decode_kept(from)?, from.u64()?);
    let (started, exited, ended) = (from.time()?, from.time()?, from.time()?);
    let (ran, drained) = (from.duration()?, from.duration()?);
    let usage = decode_usage(from)?;
    Some(match status {
        Status::Lost(why @ (LostWhy::OwnerGone | LostWhy::ServerGone)) => {
            let end = End::Unseen { found: ended, after: ran };
            Ending::lost(why, final_len, Times { started, end })
        }
        Status::Exited(_) | Status::Signalled { .. } | Status::Lost(LostWhy::TakenByOthers) => {
            let times = Times { started, end: End::Seen { exited, ended, ran, drained } };
            Ending { status, cause, closing, kept, final_len, masked: 0, times, usage }
        }
    })
}

pub(super) fn encode_dropped(dropped: &Dropped, to: &mut Encoder) {
    to.list(dropped.ranges().iter(), |to, range| {
        to.u64(range.start);
        to.u64(range.end);
    });
}

pub(super) fn decode_dropped(from: &mut Decoder<'_>) -> Option<Dropped> {
    let ranges: Vec<Range<u64>> = from.list(|from| Some(from.u64()?..from.u64()?))?;
    Some(Dropped::covering(ranges))
}

pub(super) fn encode_short(short: &ShortLog, to: &mut Encoder) {
    to.list(short.stamps.iter(), |to, stamp| {
        to.u64(stamp.offset);
        to.bool(stamp.stream == Stream::Err);
        to.u64(stamp.at_ms);
    });
    to.bytes(&short.bytes);
}

pub(super) fn decode_short(from: &mut Decoder<'_>) -> Option<ShortLog> {
    let stamps = from.list(|from| {
        let offset = from.u64()?;
        let stream = if from.bool()? { Stream::Err } else { Stream::Out };
        Some(Stamp { offset, stream, at_ms: from.u64()? })
    })?;
    Some(ShortLog { stamps, bytes: from.bytes()?.to_vec() })
}

fn encode_status(status: Status, to: &mut Encoder) {
    match status {
        Status::Exited(code) => {
            to.u8(0);
            to.i32(code);
        }
        Status::Signalled { signal, core_dumped } => {
            to.u8(1);
            to.i32(signal.number());
            to.bool(core_dumped);
        }
        Status::Lost(why) => {
            to.u8(2);
            to.u8(match why {
                LostWhy::TakenByOthers => 0,
                LostWhy::OwnerGone => 1,
                LostWhy::ServerGone => 2,
            });
        }
    }
}

fn decode_status(from: &mut Decoder<'_>) -> Option<Status> {
    Some(match from.u8()? {
        0 => Status::Exited(from.i32()?),
        1 => Status::Signalled {
            signal: Signal::from_number(from.i32()?).ok()?,
            core_dumped: from.bool()?,
        },
        2 => Status::Lost(match from.u8()? {
            0 => LostWhy::TakenByOthers,
            1 => LostWhy::OwnerGone,
            2 => LostWhy::ServerGone,
            _ => return None,
        }),
        _ => return None,
    })
}

fn encode_cause(cause: Cause, to: &mut Encoder) {
    match cause {
        Cause::Own | Cause::Unknown => to.u8(0),
        Cause::TimedOut { which, escalated } => {
            to.u8(1);
            to.bool(which == Timeout::Idle);
            to.bool(escalated);
        }
        Cause::Stopped { verb, escalated } => {
            to.u8(2);
            to.u8(match verb {
                Verb::Stop => 0,
                Verb::Close => 1,
                Verb::Disconnect => 2,
            });
            to.bool(escalated);
        }
        Cause::Limit { which, escalated } => {
            to.u8(3);
            encode_resource(which, to);
            to.bool(escalated);
        }
    }
}

fn decode_cause(from: &mut Decoder<'_>) -> Option<Cause> {
    Some(match from.u8()? {
        0 => Cause::Own,
        1 => Cause::TimedOut {
            which: if from.bool()? { Timeout::Idle } else { Timeout::Wall },
            escalated: from.bool()?,
        },
        2 => Cause::Stopped {
            verb: match from.u8()? {
                0 => Verb::Stop,
                1 => Verb::Close,
                2 => Verb::Disconnect,
                _ => return None,
            },
            escalated: from.bool()?,
        },
        3 => Cause::Limit { which: decode_resource(from)?, escalated: from.bool()? },
        _ => return None,
    })
}

fn encode_closing(closing: &Closing, to: &mut Encoder) {
    match closing {
        Closing::Eof => to.u8(0),
        Closing::Held(Holders::Unknown) | Closing::Unknown => to.u8(1),
        Closing::Held(Holders::Known(holders)) => {
            to.u8(2);
            to.list(holders.iter(), |to, Holder { pid, name }| {
                to.i32(*pid);
                to.text(name);
            });
        }
    }
}

fn decode_closing(from: &mut Decoder<'_>) -> Option<Closing> {
    let holder = |from: &mut Decoder<'_>| Some(Holder { pid: from.i32()?, name: from.text()? });
    Some(match from.u8()? {
        0 => Closing::Eof,
        1 => Closing::Held(Holders::Unknown),
        2 => Closing::Held(Holders::Known(from.list(holder)?)),
        _ => return None,
    })
}

fn encode_kept(kept: &Kept, to: &mut Encoder) {
    match kept {
        Kept::Whole | Kept::Unknown => to.u8(0),
        Kept::Dropped(dropped) => {
            to.u8(1);
            encode_dropped(dropped, to);
        }
        Kept::Failed { failed, dropped } => {
            to.u8(2);
            to.i32(failed.errno.raw_os_error());
            to.u64(failed.at);
            encode_dropped(dropped, to);
        }
    }
}

fn decode_kept(from: &mut Decoder<'_>) -> Option<Kept> {
    Some(match from.u8()? {
        0 => Kept::Whole,
        1 => Kept::Dropped(decode_dropped(from)?),
        2 => Kept::Failed {
            failed: Failed { errno: decode_errno(from)?, at: from.u64()? },
            dropped: decode_dropped(from)?,
        },
        _ => return None,
    })
}

/// Earlier versions write and read only 0 and 1.
fn encode_usage(usage: Option<&Usage>, to: &mut Encoder) {
    let Some(Usage { user, system, peak_memory, oom_killed, forks_refused }) = usage else {
        return to.u8(0);
    };
    to.u8(1 + u8::from(*oom_killed) + 2 * u8::from(*forks_refused));
    to.duration(*user);
    to.duration(*system);
    to.option(*peak_memory, Encoder::u64);
}

#[expect(clippy::option_option, reason = "the outer one is for invalid bytes")]
fn decode_usage(from: &mut Decoder<'_>) -> Option<Option<Usage>> {
    let (oom_killed, forks_refused) = match from.u8()? {
        0 => return Some(None),
        kind @ 1..=4 => ((kind - 1) & 1 != 0, (kind - 1) & 2 != 0),
        _ => return None,
    };
    let (user, system) = (from.duration()?, from.duration()?);
    let peak_memory = from.option(Decoder::u64)?;
    Some(Some(Usage { user, system, peak_memory, oom_killed, forks_refused }))
}

/// Only numbers that the kernel gives out: any other would be a panic.
fn decode_errno(from: &mut Decoder<'_>) -> Option<Errno> {
    let number = from.i32()?;
    (1..4096).contains(&number).then(|| Errno::from_raw_os_error(number))
}
