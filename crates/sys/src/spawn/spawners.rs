//! The threads that create children, each with a private descriptor table.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};

use super::answers::Answers;
use super::clone::{Mechanism, NewProcess, Stack, open_cgroup, spawn, unless_failed};
use super::confine::Confining;
use super::ends::ChildEnds;
use super::messages::{Contents, Exchange, PidOrFailure};
use super::request::{Failure, Request, Step};
use super::setup::Setup;
use super::table::enter_table;
use crate::Child;
use crate::confine::{Filter, Rulesets};
use crate::leaders::Births;
use crate::own_signals;

/// A handle to the spawner threads; they exit when it is dropped.
#[derive(Debug)]
pub struct Spawners {
    socket: Arc<OwnedFd>,
    exchange: Arc<Exchange>,
}

impl Spawners {
    /// Starts this many threads. Their answers are readable on the second value.
    ///
    /// With a filter, they create only commands that are confined by it and inherit it. Without
    /// one, they create only unconfined commands.
    pub fn start(
        threads: usize,
        mechanism: Mechanism,
        filter: Option<Arc<Filter>>,
    ) -> Result<(Self, Answers), Failure> {
        let unable = Step::Clone.failed();
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(&unable)?;
        crate::pipe::set_nonblocking(&ours).map_err(&unable)?;
        let exchange = Arc::new(Exchange::new());
        let (ready, started) = channel();
        let threads = (0..threads).map(|number| {
            let (exchange, ready) = (Arc::clone(&exchange), ready.clone());
            let (socket, filter) = (theirs.as_raw_fd(), filter.clone());
            let builder = thread::Builder::new().name(format!("spawner-{number}"));
            builder.spawn(move || run(socket, (mechanism, filter), &exchange, ready)).map(drop)
        });
        let threads: Vec<io::Result<()>> = threads.collect();
        drop(ready);
        // `theirs` stays open in our table until all threads have copied the table or failed.
        let started: Vec<Result<(), Failure>> = started.into_iter().collect();
        let no_thread = |error| unable(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN));
        threads.into_iter().collect::<io::Result<()>>().map_err(no_thread)?;
        started.into_iter().collect::<Result<(), Failure>>()?;
        let socket = Arc::new(ours);
        let answers = Answers { socket: Arc::clone(&socket), exchange: Arc::clone(&exchange) };
        Ok((Self { socket, exchange }, answers))
    }

    /// Requests a child with these ends. The answer has the same id.
    ///
    /// Drop the ends once the answer has arrived. Until then they reserve a place in the program's
    /// table for the pidfd, and they keep the output from reading as ended.
    pub fn submit(&self, id: u64, request: Request, ends: &ChildEnds) -> Result<(), Failure> {
        let sent =
            self.exchange.requests.send(self.socket.as_fd(), (id, request), &ends.borrowed());
        sent.map_err(|errno| match errno {
            Errno::PIPE => NO_SPAWNER,
            errno => Failure { step: Step::Handover, errno },
        })
    }
}

impl Drop for Spawners {
    /// The threads exit once they have taken the queued requests.
    fn drop(&mut self) {
        _ = shutdown(&self.socket, Shutdown::Write); // fails if they are already gone
    }
}

fn run(
    socket: RawFd,
    kind: (Mechanism, Option<Arc<Filter>>),
    exchange: &Exchange,
    ready: Sender<Result<(), Failure>>,
) {
    own_signals::block_all();
    match Spawner::new(socket, kind) {
        Ok(mut spawner) => {
            // The starting thread waits for every answer, so the receiver exists.
            _ = ready.send(Ok(()));
            drop(ready);
            spawner.serve(exchange);
        }
        Err(failure) => _ = ready.send(Err(failure)),
    }
}

struct Spawner {
    /// Its end of the program's socket.
    socket: OwnedFd,
    /// `/dev/null`.
    null: OwnedFd,
    stack: Stack,
    mechanism: Mechanism,
    /// Installed on this thread, so every child inherits it.
    filter: Option<Arc<Filter>>,
    births: Births,
    rulesets: Rulesets,
}

impl Spawner {
    fn new(
        socket: RawFd,
        (mechanism, filter): (Mechanism, Option<Arc<Filter>>),
    ) -> Result<Self, Failure> {
        let (socket, null) = enter_table(socket).map_err(Step::Descriptors.failed())?;
        let stack = Stack::new().map_err(Step::Clone.failed())?;
        let (births, rulesets) = (Births::begin(), Rulesets::new());
        // Last, because it would refuse to unshare the table.
        filter.iter().try_for_each(|filter| filter.install()).map_err(Step::Filter.failed())?;
        Ok(Self { socket, null, stack, mechanism, filter, births, rulesets })
    }

    fn serve(&mut self, Exchange { requests, outcomes }: &Exchange) {
        loop {
            let (id, mut request, ends) = match requests.receive(self.socket.as_fd()) {
                Ok(Some(request)) => request,
                Err(Errno::INTR | Errno::NOMEM | Errno::NOBUFS) => continue,
                Ok(None) | Err(_) => return,
            };
            let attempt = AssertUnwindSafe(|| self.attempt(&mut request, ends));
            match catch_unwind(attempt).unwrap_or(Err(NO_SPAWNER)) {
                Ok(started) => self.hand_over(outcomes, id, started),
                // This fails only if the program is gone, and then nothing waits for the answer.
                Err(failure) => {
                    _ = outcomes.send(self.socket.as_fd(), (id, Err(failure)), &[]);
                }
            }
        }
    }

    /// The ends are closed when this returns, before anything can wait for the output to end.
    ///
    /// A program that was just written may still be open for writing in another child that is
    /// between clone and exec. Agents compile and run in quick succession, so a short wait is
    /// worthwhile.
    fn attempt(
        &mut self,
        request: &mut Request,
        ends: Vec<OwnedFd>,
    ) -> Result<NewProcess, Failure> {
        let no_room = Failure { step: Step::Handover, errno: Errno::MFILE };
        let ends = ChildEnds::received(ends, request.stdin, request.output).ok_or(no_room)?;
        let wanted = request.confinement.as_ref().map(|confinement| &confinement.filter);
        if wanted.map(Arc::as_ptr) != self.filter.as_ref().map(Arc::as_ptr) {
            return Err(Failure { step: Step::Filter, errno: Errno::INVAL });
        }
        for patience in [1, 5, 25] {
            match self.spawn(request, &ends) {
                Err(Failure { errno: Errno::TXTBSY, .. }) => pause(Duration::from_millis(patience)),
                answer => return answer,
            }
            // The first child has removed it.
            request.gate = None;
        }
        self.spawn(request, &ends)
    }

    /// The command is running, so this keeps trying as long as the program exists.
    fn hand_over(&self, outcomes: &Contents<PidOrFailure>, id: u64, (pid, pidfd): NewProcess) {
        let send = |fds: &[_]| outcomes.send(self.socket.as_fd(), (id, Ok(pid)), fds);
        let mut sent = send(&[pidfd.as_fd()]);
        // Descriptors in transit count against this user's limit; a pid does not.
        while let Err(Errno::TOOMANYREFS | Errno::NOMEM | Errno::NOBUFS) = sent {
            pause(Duration::from_millis(1));
            sent = send(&[]);
        }
        if sent.is_err() {
            drop(Child::new(pid, pidfd)); // kills it: it will never have an owner
        }
    }

    fn spawn(&mut self, request: &Request, ends: &ChildEnds) -> Result<NewProcess, Failure> {
        let cgroup = request.cgroup.as_deref().map(open_cgroup).transpose();
        let cgroup = cgroup.map_err(Step::Cgroup.failed())?;
        // The child copies the ruleset from the spawner's own table.
        let confining = request.confinement.as_deref();
        let confining = confining.map(|wanted| Confining::new(wanted, &mut self.rulesets));
        let confining = confining.transpose().map_err(Step::Ruleset.failed())?;
        let streams = ends.streams((request.stdin, request.output), &self.null);
        let setup = Setup::new(request, streams, confining, self.births.next());
        let cgroup = cgroup.as_ref().map(AsFd::as_fd);
        request.place.iter().for_each(|place| place.forget_leader());
        // A refusal may be caused by the namespaces.
        let plain = cgroup.is_none() && setup.namespaces() == 0;
        let made = match spawn(&setup, &mut self.stack, self.mechanism, cgroup) {
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL)
                if self.mechanism == Mechanism::Clone3 && plain =>
            {
                self.mechanism = Mechanism::Clone;
                spawn(&setup, &mut self.stack, self.mechanism, None)
            }
            answer => answer,
        };
        let (pid, pidfd) =
            made.map_err(|errno| Failure { step: clone_step(cgroup, errno), errno })?;
        let never_ran = cgroup.is_some() && !self.births.announced(pid);
        self.births.born(pid);
        let failure = setup.failure.get().or(never_ran.then_some(NEVER_RAN));
        if failure.is_some() {
            // Before it is reaped.
            request.place.iter().for_each(|place| place.forget_leader());
        }
        unless_failed((pid, pidfd), failure)
    }
}

/// Too many processes or too little memory are not caused by the cgroup.
fn clone_step(cgroup: Option<BorrowedFd<'_>>, errno: Errno) -> Step {
    match (cgroup, errno) {
        (None, _) | (Some(_), Errno::AGAIN | Errno::NOMEM) => Step::Clone,
        (Some(_), _) => Step::Cgroup,
    }
}

/// Killed before its first instruction, because the cgroup was killed, see `cgroup::Cgroup`. This is
/// not how the command ended: it never started.
const NEVER_RAN: Failure = Failure { step: Step::Cgroup, errno: Errno::CANCELED };
/// It panicked, or is gone.
const NO_SPAWNER: Failure = Failure { step: Step::Clone, errno: Errno::NOTRECOVERABLE };

#[expect(
    clippy::disallowed_methods,
    reason = "time is the subject: the writer is in another child"
)]
fn pause(time: Duration) {
    thread::sleep(time);
}
