//! Finding out whether a confinement can be had, by having it.

use std::ffi::CString;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::Confinement;
use crate::spawn::{Failure, Mechanism, Output, Request, Spawners, Stdin, Step};

/// Makes a child that puts all of it on and then has nothing to run. Blocks for a millisecond.
pub fn try_out(confinement: Arc<Confinement>, mechanism: Mechanism) -> Result<(), Failure> {
    let filter = Some(Arc::clone(&confinement.filter));
    let (spawners, answers) = Spawners::start(1, mechanism, filter)?;
    spawners.submit(0, nothing(confinement));
    loop {
        match answers.receive() {
            Ok(Some(answer)) => return judge(answer.result.err()),
            Ok(None) => return Err(Failure { step: Step::Clone, errno: Errno::NOTRECOVERABLE }),
            Err(Errno::AGAIN) => {
                // However this returns, the next look tells.
                _ = poll(&mut [PollFd::new(&answers, PollFlags::IN)], None);
            }
            Err(errno) => return Err(Failure { step: Step::Handover, errno }),
        }
    }
}

/// The last step has no program to find; to have come that far is what was asked.
fn judge(failure: Option<Failure>) -> Result<(), Failure> {
    match failure {
        None | Some(Failure { step: Step::Program, errno: Errno::NOENT }) => Ok(()),
        Some(failure) => Err(failure),
    }
}

fn nothing(confinement: Arc<Confinement>) -> Request {
    Request {
        programs: Vec::new(),
        argv: Vec::new(),
        env: Vec::new(),
        cwd: CString::from(c"/"),
        stdin: Stdin::Null,
        output: Output::Merged,
        leaf: None,
        confinement: Some(confinement),
    }
}
