//! What a short log says, as bytes and back; and who writes it down.

use std::sync::Arc;

use lastbyte_output::log::{Keep, ShortLog, Stamp, Stream};

use super::codec::{Decoder, Encoder};
use super::file::Journal;
use super::record::Record;
use crate::Id;

/// Keeps the log of one process in the journal while it is short.
#[derive(Debug)]
pub(crate) struct Keeper {
    id: Id,
    journal: Arc<Journal>,
}

impl Keeper {
    pub(crate) fn new(id: Id, journal: Arc<Journal>) -> Self {
        Self { id, journal }
    }
}

impl Keep for Keeper {
    fn keep(&self, more: &ShortLog) -> bool {
        self.journal.append_now(&Record::Said { id: self.id, more: more.clone() })
    }

    fn moved(&self) {
        self.journal.append(&Record::Moved { id: self.id });
    }
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
