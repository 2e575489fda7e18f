//! Records for tests, as small as can be.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lastbyte_output::log::{Extent, ShortLog};

use super::record::{Launched, Record};
use crate::Id;
use crate::launch::{Launch, Spec};
use crate::process::ending::{End, Ending, LostWhy, Times};

pub(super) fn launched(id: Id, cgroup: Option<&str>) -> Record {
    launched_with(id, cgroup, None)
}

pub(super) fn launched_with(id: Id, cgroup: Option<&str>, log: Option<u64>) -> Record {
    let launch = Launch::shell("x".repeat(50));
    Record::Launched(Box::new(Launched {
        spec: Arc::new(Spec::new(id, &launch, "/".into(), SystemTime::UNIX_EPOCH)),
        fingerprint: None,
        cgroup: cgroup.map(Into::into),
        log,
    }))
}

/// That of a process that said these bytes and was lost.
pub(super) fn ended_short(id: Id, bytes: &[u8]) -> Record {
    let extent = Extent { len: bytes.len() as u64, ..Extent::default() };
    let at = SystemTime::UNIX_EPOCH;
    let times = Times { started: at, end: End::Unseen { found: at, after: Duration::ZERO } };
    let ending = Ending::lost(LostWhy::OwnerGone, extent.len, times);
    let short = ShortLog { bytes: bytes.to_vec(), stamps: Vec::new() };
    Record::ended(id, &ending, &extent, Some(&short))
}
