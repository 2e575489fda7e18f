//! A launch for tests, as small as can be.

use std::time::SystemTime;

use super::record::{Launched, Record};
use crate::Id;
use crate::launch::{Program, Streams};
use crate::sandbox::Sandbox;
use crate::stop::StopPolicy;

pub(super) fn launched(id: Id, leaf: Option<&str>) -> Record {
    Record::Launched(Box::new(Launched {
        id,
        program: Program::Shell("x".repeat(50).into()),
        cwd: "/".into(),
        env_names: vec![],
        session: None,
        key: None,
        labels: [].into(),
        streams: Streams::Merged,
        started: SystemTime::UNIX_EPOCH,
        stop: StopPolicy::default(),
        sandbox: Sandbox::FullAccess,
        leaf: leaf.map(Into::into),
    }))
}
