//! What the journal says of a process, one record for each step of its life.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use lastbyte_output::log::{Dropped, Extent, ShortLog};
use lastbyte_sys::Signal;
use lastbyte_sys::pty::WindowSize;

use super::codec::{Decoder, Encoder};
use super::ending::{
    decode_dropped, decode_ending, decode_short, encode_dropped, encode_ending, encode_short,
};
use super::fingerprint::{Fingerprint, HashKey, encode_program, encode_streams};
use super::frames::split;
use super::limits::{decode_enforcement, decode_limits, encode_enforcement, encode_limits};
use super::resources::{decode_limited, encode_limited};
use super::sandbox::{decode_sandbox, encode_sandbox};
use crate::Id;
use crate::launch::{Key, Name, OnDisconnect, Program, Session, Spec, Streams};
use crate::process::ending::Ending;
use crate::stop::StopPolicy;

/// One thing to remember.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Record {
    /// About to be cloned.
    Launched(Box<Launched>),
    /// It has this pid.
    Started { id: Id, pid: i32 },
    /// Nothing came of it.
    Failed { id: Id },
    /// Its ending, and what was dropped of its log until then. A short log is in here as a whole:
    /// then it needs no file.
    Ended { id: Id, ending: Box<Ending>, dropped: Dropped, short: Option<ShortLog> },
    /// It and its log are gone.
    Forgotten { id: Id },
    /// Its time was over.
    TimedOut { id: Id, at: SystemTime },
}

/// What is known of a process before it is cloned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launched {
    pub(crate) spec: Arc<Spec>,
    /// Of the launch, if it has a key.
    pub(crate) fingerprint: Option<Fingerprint>,
    /// The folder of the cgroup that its tree lives in.
    pub(crate) cgroup: Option<PathBuf>,
    /// The number of its log's file, which no other process has.
    pub(crate) log: Option<u64>,
}

/// Of each payload, so that a later program can tell what an earlier one wrote.
pub(super) const VERSION: u8 = 1;

/// The kind of a launch with limits of what it may use, or with secrets.
const WITH_ADDITIONS: u8 = 8;

/// The kind of one that is stopped when its clients are gone, with the same additions.
const STOPPED_ALONE: u8 = 10;

impl Launched {
    fn encode(&self, to: &mut Encoder) {
        let Spec {
            id,
            started,
            program,
            cwd,
            env_names,
            secret_names,
            streams,
            stop,
            sandbox,
            enforcement,
            limits,
            resources,
            on_disconnect,
            session,
            key,
            name,
            labels,
        } = &*self.spec;
        to.u128(id.number());
        encode_program(program, to);
        to.os(cwd);
        to.list(env_names.iter(), Encoder::os);
        to.option(session.as_ref(), |to, session| to.text(&session.0));
        to.option(key.as_ref().zip(self.fingerprint), |to, (key, fingerprint)| {
            to.text(&key.0);
            to.u128(fingerprint.0);
        });
        to.list(labels.iter(), |to, (name, value)| {
            to.text(name);
            to.text(value);
        });
        encode_streams(*streams, to);
        to.time(*started);
        to.i32(stop.signal.number());
        to.duration(stop.grace);
        to.option(self.cgroup.as_ref(), Encoder::os);
        encode_sandbox(sandbox, to);
        to.option(self.log, Encoder::u64);
        // Last, and in records of other kinds, so that records of earlier versions can still be read.
        match limits {
            None => name.iter().for_each(|name| to.text(&name.0)),
            Some(limits) => {
                to.option(name.as_ref(), |to, name| to.text(&name.0));
                encode_limits(*limits, to);
                to.option(*enforcement, encode_enforcement);
            }
        }
        if [WITH_ADDITIONS, STOPPED_ALONE].contains(&self.kind()) {
            to.option(resources.as_ref(), |to, resources| encode_limited(resources, to));
            to.list(secret_names.iter(), |to, name| to.text(name));
        }
        if let (STOPPED_ALONE, OnDisconnect::Stop { after }) = (self.kind(), on_disconnect) {
            to.duration(*after);
        }
    }

    /// The kind of its record.
    fn kind(&self) -> u8 {
        let Spec { limits, resources, on_disconnect, secret_names, name, .. } = &*self.spec;
        let has_additions = resources.is_some() || !secret_names.is_empty();
        match (limits, name) {
            (Some(_), _) if *on_disconnect != OnDisconnect::Keep => STOPPED_ALONE,
            (Some(_), _) if has_additions => WITH_ADDITIONS,
            (Some(_), _) => 7,
            (None, Some(_)) => 6,
            (None, None) => 0,
        }
    }

    fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        let id = decode_id(from)?;
        let program = decode_program(from)?;
        let cwd = from.os()?.into();
        let env_names = from.list(Decoder::os)?;
        let session = from.option(Decoder::text)?.map(Session);
        let key = from.option(|from| Some((Key(from.text()?), Fingerprint(from.u128()?))))?;
        let (key, fingerprint) = key.unzip();
        let labels = from.list(|from| Some((from.text()?, from.text()?)))?;
        let streams = decode_streams(from)?;
        let started = from.time()?;
        let signal = Signal::from_number(from.i32()?).ok()?;
        let stop = StopPolicy { signal, grace: from.duration()? };
        let cgroup = from.option(Decoder::os)?.map(PathBuf::from);
        let sandbox = decode_sandbox(from)?;
        let log = from.option(Decoder::u64)?;
        let spec = Spec {
            id,
            started,
            program,
            cwd,
            env_names,
            secret_names: Vec::new(),
            streams,
            stop,
            sandbox,
            enforcement: None,
            limits: None,
            resources: None,
            on_disconnect: OnDisconnect::Keep,
            session,
            key,
            name: None,
            labels,
        };
        Some(Self { spec: Arc::new(spec), fingerprint, cgroup, log })
    }

    fn decode_named(from: &mut Decoder<'_>) -> Option<Self> {
        let mut launched = Self::decode(from)?;
        Arc::make_mut(&mut launched.spec).name = Some(Name(from.text()?));
        Some(launched)
    }

    fn decode_limited(from: &mut Decoder<'_>) -> Option<Self> {
        let mut launched = Self::decode(from)?;
        let spec = Arc::make_mut(&mut launched.spec);
        spec.name = from.option(Decoder::text)?.map(Name);
        spec.limits = Some(decode_limits(from)?);
        spec.enforcement = from.option(decode_enforcement)?;
        Some(launched)
    }

    /// Limits of what it may use, and secrets.
    fn decode_with_additions(from: &mut Decoder<'_>) -> Option<Self> {
        let mut launched = Self::decode_limited(from)?;
        let spec = Arc::make_mut(&mut launched.spec);
        spec.resources = from.option(decode_limited)?;
        spec.secret_names = from.list(Decoder::text)?;
        Some(launched)
    }

    fn decode_stopped_alone(from: &mut Decoder<'_>) -> Option<Self> {
        let mut launched = Self::decode_with_additions(from)?;
        let after = from.duration()?;
        Arc::make_mut(&mut launched.spec).on_disconnect = OnDisconnect::Stop { after };
        Some(launched)
    }
}

impl Record {
    pub(super) fn ended(
        id: Id,
        ending: &Ending,
        extent: &Extent,
        short: Option<&ShortLog>,
    ) -> Self {
        // What is dropped of late output the file itself tells.
        let dropped = extent.dropped.below(ending.final_len);
        Self::Ended { id, ending: Box::new(ending.clone()), dropped, short: short.cloned() }
    }

    pub(super) fn id(&self) -> Id {
        match self {
            Self::Launched(launched) => launched.spec.id,
            Self::Started { id, .. }
            | Self::Failed { id }
            | Self::Ended { id, .. }
            | Self::Forgotten { id }
            | Self::TimedOut { id, .. } => *id,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = Encoder::new();
        to.u8(VERSION);
        to.u8(match self {
            Self::Launched(launched) => launched.kind(),
            Self::Started { .. } => 1,
            Self::Failed { .. } => 2,
            Self::Ended { ending, .. } if ending.masked > 0 => 9,
            Self::Ended { .. } => 3,
            Self::Forgotten { .. } => 4,
            Self::TimedOut { .. } => 5,
        });
        match self {
            Self::Launched(launched) => launched.encode(&mut to),
            Self::Started { id, pid } => {
                to.u128(id.number());
                to.i32(*pid);
            }
            Self::Ended { id, ending, dropped, short } => {
                to.u128(id.number());
                encode_ending(ending, &mut to);
                encode_dropped(dropped, &mut to);
                to.option(short.as_ref(), |to, short| encode_short(short, to));
                if ending.masked > 0 {
                    to.u64(ending.masked);
                }
            }
            Self::TimedOut { id, at } => {
                to.u128(id.number());
                to.time(*at);
            }
            Self::Failed { id } | Self::Forgotten { id } => to.u128(id.number()),
        }
        to.bytes
    }

    /// `None` for one that this version does not know.
    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        let mut from = Decoder::new(payload);
        let record = match (from.u8()?, from.u8()?) {
            (VERSION, 0) => Self::Launched(Box::new(Launched::decode(&mut from)?)),
            (VERSION, 1) => Self::Started { id: decode_id(&mut from)?, pid: from.i32()? },
            (VERSION, 2) => Self::Failed { id: decode_id(&mut from)? },
            (VERSION, 3) => Self::decode_ended(&mut from)?,
            (VERSION, 4) => Self::Forgotten { id: decode_id(&mut from)? },
            (VERSION, 5) => Self::TimedOut { id: decode_id(&mut from)?, at: from.time()? },
            (VERSION, 6) => Self::Launched(Box::new(Launched::decode_named(&mut from)?)),
            (VERSION, 7) => Self::Launched(Box::new(Launched::decode_limited(&mut from)?)),
            (VERSION, WITH_ADDITIONS) => {
                Self::Launched(Box::new(Launched::decode_with_additions(&mut from)?))
            }
            (VERSION, 9) => Self::decode_ended(&mut from)?.with_masked(from.u64()?),
            (VERSION, STOPPED_ALONE) => {
                Self::Launched(Box::new(Launched::decode_stopped_alone(&mut from)?))
            }
            _ => return None,
        };
        from.end()?;
        Some(record)
    }

    fn decode_ended(from: &mut Decoder<'_>) -> Option<Self> {
        Some(Self::Ended {
            id: decode_id(from)?,
            ending: Box::new(decode_ending(from)?),
            dropped: decode_dropped(from)?,
            short: from.option(decode_short)?,
        })
    }

    fn with_masked(mut self, masked: u64) -> Self {
        if let Self::Ended { ending, .. } = &mut self {
            ending.masked = masked;
        }
        self
    }
}

/// The records of these frames.
pub(super) fn decoded(key: HashKey, frames: &[u8]) -> Vec<Record> {
    let (payloads, _) = split(key, frames);
    payloads.into_iter().filter_map(Record::decode).collect()
}

fn decode_id(from: &mut Decoder<'_>) -> Option<Id> {
    from.u128().map(Id::from_number)
}

fn decode_program(from: &mut Decoder<'_>) -> Option<Program> {
    match from.u8()? {
        0 => from.list(Decoder::os).map(Program::Argv),
        1 => from.os().map(Program::Shell),
        _ => None,
    }
}

fn decode_streams(from: &mut Decoder<'_>) -> Option<Streams> {
    let side = |from: &mut Decoder<'_>| u16::try_from(from.i32()?).ok();
    match from.u8()? {
        0 => Some(Streams::Merged),
        1 => Some(Streams::Split),
        2 => Some(Streams::Pty(WindowSize { rows: side(from)?, cols: side(from)? })),
        _ => None,
    }
}
