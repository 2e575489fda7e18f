//! The limits of a launch as bytes, and how its policy is enforced.

use lastbyte_output::log::Quota;

use super::codec::{Decoder, Encoder};
use crate::launch::{Limits, OnQuota, OnTimeout, Timeouts};
use crate::sandbox::Enforcement;

pub(super) fn encode_limits(limits: Limits, to: &mut Encoder) {
    let Limits { timeouts: Timeouts { wall, idle }, on_timeout, quota, on_quota } = limits;
    to.option(wall, Encoder::duration);
    to.option(idle, Encoder::duration);
    to.bool(on_timeout == OnTimeout::Background);
    to.u64(quota.bytes());
    to.bool(on_quota == OnQuota::Block);
}

pub(super) fn decode_limits(from: &mut Decoder<'_>) -> Option<Limits> {
    let wall = from.option(Decoder::duration)?;
    let timeouts = Timeouts { wall, idle: from.option(Decoder::duration)? };
    let on_timeout = if from.bool()? { OnTimeout::Background } else { OnTimeout::Stop };
    let quota = Quota::new(from.u64()?).ok()?;
    let on_quota = if from.bool()? { OnQuota::Block } else { OnQuota::Drop };
    Some(Limits { timeouts, on_timeout, quota, on_quota })
}

pub(super) fn encode_enforcement(to: &mut Encoder, enforcement: Enforcement) {
    to.u8(match enforcement {
        Enforcement::Mounts => 0,
        Enforcement::UserMounts => 1,
        Enforcement::Landlock => 2,
    });
}

pub(super) fn decode_enforcement(from: &mut Decoder<'_>) -> Option<Enforcement> {
    match from.u8()? {
        0 => Some(Enforcement::Mounts),
        1 => Some(Enforcement::UserMounts),
        2 => Some(Enforcement::Landlock),
        _ => None,
    }
}
