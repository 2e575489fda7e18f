//! Checks whether a confinement works here by applying it to a child.

use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::Confinement;
use crate::spawn::{Failure, Mechanism, Output, Request, Spawners, Stdin, Step, open_ends};

/// Starts a child that applies the whole confinement and then has nothing to execute. Blocks for
/// about a millisecond.
pub fn probe(confinement: Arc<Confinement>, mechanism: Mechanism) -> Result<(), Failure> {
    let filter = Some(Arc::clone(&confinement.filter));
    let (spawners, answers) = Spawners::start(1, mechanism, filter)?;
    let (_ours, childs) = open_ends(Stdin::Null, Output::Merged)?;
    let cwd = c"/".into();
    let request = Request { cwd, confinement: Some(confinement), ..Request::default() };
    spawners.submit(0, request, &childs)?;
    loop {
        match answers.receive() {
            Ok(Some(answer)) => match answer.result {
                Err(failure) if failure != NO_PROGRAM => return Err(failure),
                Ok(_) | Err(_) => return Ok(()),
            },
            Ok(None) => return Err(Failure { step: Step::Clone, errno: Errno::NOTRECOVERABLE }),
            Err(Errno::AGAIN) => {
                // Whatever poll returns, the next receive decides.
                _ = poll(&mut [PollFd::new(&answers, PollFlags::IN)], None);
            }
            Err(errno) => return Err(Failure { step: Step::Handover, errno }),
        }
    }
}

/// The child has no program to execute, so reaching that step is success.
const NO_PROGRAM: Failure = Failure { step: Step::Program, errno: Errno::NOENT };
