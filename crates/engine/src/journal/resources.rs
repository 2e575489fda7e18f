//! What a process may use, as bytes.

use super::codec::{Decoder, Encoder};
use crate::launch::{EnforcedBy, Limited, Resource, Resources};

pub(super) fn encode_resources(resources: &Resources, to: &mut Encoder) {
    let Resources { memory, milli_cpus, pids, open_files, file_size, cpu_time, strict } = resources;
    for limit in [memory, milli_cpus, pids, open_files, file_size] {
        to.option(*limit, Encoder::u64);
    }
    to.option(*cpu_time, Encoder::duration);
    to.bool(*strict);
}

fn decode_resources(from: &mut Decoder<'_>) -> Option<Resources> {
    Some(Resources {
        memory: from.option(Decoder::u64)?,
        milli_cpus: from.option(Decoder::u64)?,
        pids: from.option(Decoder::u64)?,
        open_files: from.option(Decoder::u64)?,
        file_size: from.option(Decoder::u64)?,
        cpu_time: from.option(Decoder::duration)?,
        strict: from.bool()?,
    })
}

pub(super) fn encode_limited(Limited { limits, by }: &Limited, to: &mut Encoder) {
    encode_resources(limits, to);
    to.list(by.iter(), |to, (which, by)| {
        encode_resource(*which, to);
        to.bool(*by == EnforcedBy::Sampling);
    });
}

pub(super) fn decode_limited(from: &mut Decoder<'_>) -> Option<Limited> {
    let limits = decode_resources(from)?;
    let by = from.list(|from| {
        let which = decode_resource(from)?;
        Some((which, if from.bool()? { EnforcedBy::Sampling } else { EnforcedBy::Kernel }))
    })?;
    Some(Limited { limits, by })
}

pub(super) fn encode_resource(which: Resource, to: &mut Encoder) {
    to.u8(which as u8);
}

pub(super) fn decode_resource(from: &mut Decoder<'_>) -> Option<Resource> {
    let number = from.u8()?;
    Resource::ALL.into_iter().find(|which| *which as u8 == number)
}
