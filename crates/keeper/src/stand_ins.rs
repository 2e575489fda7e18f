//! The stand-ins, as the keeper has them: one for each worker whose descriptors are still in use.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::time::Duration;

use lastbyte_sys::registry::{Purpose, Registry};
use lastbyte_sys::stand_in::{MOST_NUMBERS, Question, ask};
use lastbyte_sys::{Errno, packets};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// By the generation of their worker, the newest last.
#[derive(Debug, Default)]
pub(crate) struct StandIns {
    sockets: Vec<(u32, OwnedFd)>,
    /// Those that were told to go, by pidfd.
    going: Vec<OwnedFd>,
    asked: u32,
}

/// How long an answer may take. Only ends a hang: a stand-in that is stopped is given up.
const PATIENCE: Duration = Duration::from_secs(5);

impl StandIns {
    pub(crate) fn add(&mut self, generation: u32, socket: OwnedFd) {
        self.sockets.push((generation, socket));
    }

    /// Those of dead workers.
    pub(crate) fn older_than(&self, generation: u32) -> impl Iterator<Item = &(u32, OwnedFd)> {
        self.sockets.iter().filter(move |(of, _)| *of < generation)
    }

    /// Forgets those that are gone.
    pub(crate) fn forget_gone(&mut self) {
        self.sockets.retain(|(_, socket)| !packets::is_closed(socket));
        self.going.retain(|pidfd| !is_dead(pidfd, Duration::ZERO));
    }

    /// After a worker's death: whatever is in no slot is closed, such as connections of clients. A
    /// stand-in that has nothing to hold goes.
    pub(crate) fn close_unused(&mut self, registry: &Registry) {
        let mut used: BTreeMap<u32, Vec<RawFd>> = BTreeMap::new();
        for place in registry.used() {
            for (generation, number) in Purpose::ALL.into_iter().filter_map(|p| place.descriptor(p))
            {
                used.entry(generation).or_default().push(number);
            }
        }
        let stand_ins = std::mem::take(&mut self.sockets);
        for (generation, socket) in stand_ins {
            let mut kept = used.remove(&generation).unwrap_or_default();
            kept.sort_unstable();
            match self.close_except(&socket, &kept) {
                Ok(Some(_)) if !kept.is_empty() => self.sockets.push((generation, socket)),
                Ok(Some(pid)) => self.go(&socket, pid),
                // It is gone, or will be when its socket is closed.
                Ok(None) | Err(Errno::TIMEDOUT) => {}
                // We are short of something. It has what runs, and too much besides.
                Err(_) => self.sockets.push((generation, socket)),
            }
        }
    }

    /// Lets all of them go, and waits until they have closed everything and are dead: the next
    /// server may need what they have open.
    pub(crate) fn finish(&mut self) {
        for (_, socket) in std::mem::take(&mut self.sockets) {
            if let Ok(Some(pid)) = self.close_except(&socket, &[]) {
                self.go(&socket, pid);
            }
        }
        for pidfd in std::mem::take(&mut self.going) {
            is_dead(&pidfd, PATIENCE);
        }
    }

    /// Closes everything but these, which ascend. Returns the pid of the stand-in if it is there.
    fn close_except(&mut self, socket: &OwnedFd, kept: &[RawFd]) -> Result<Option<i32>, Errno> {
        let mut first = 3;
        for part in kept.chunks(MOST_NUMBERS) {
            let last = part.last().map_or(first, |number| number.unsigned_abs());
            let question = Question::Close { first, last, except: part };
            if ask(socket, self.number(), question, PATIENCE)?.is_none() {
                return Ok(None);
            }
            first = last.saturating_add(1);
        }
        let question = Question::Close { first, last: u32::MAX, except: &[] };
        Ok(ask(socket, self.number(), question, PATIENCE)?.map(|answer| answer.pid))
    }

    /// It is our child, so its pid is its own until we reap it.
    fn go(&mut self, socket: &OwnedFd, pid: i32) {
        let pid = Pid::from_raw(pid);
        self.going.extend(pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()));
        // One that cannot be told is gone, or goes when its socket is closed.
        _ = ask(socket.as_fd(), self.number(), Question::Go, PATIENCE);
    }

    /// Workers' questions have their generation, which is not 0, in the upper half.
    fn number(&mut self) -> u64 {
        self.asked += 1;
        self.asked.into()
    }
}

/// Whether it is dead, at the latest after this time.
fn is_dead(pidfd: &OwnedFd, patience: Duration) -> bool {
    let mut polled = [PollFd::new(pidfd, PollFlags::IN)];
    let patience = patience.try_into().ok();
    rustix::io::retry_on_intr(|| poll(&mut polled, patience.as_ref())).is_ok_and(|ready| ready > 0)
}
