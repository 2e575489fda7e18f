//! The threads that make children, each with a descriptor table of its own.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::answers::{Answers, send_failure, send_spawned};
use super::clone::{Mechanism, Stack, spawn};
use super::confine::Confining;
use super::queue::{Orders, Requests};
use super::request::{Failure, Request, Step};
use super::setup::Setup;
use super::table::{Pipes, Table};
use crate::Child;
use crate::confine::{Confinement, Filter, Rulesets};
use crate::leaders::Births;

/// A handle on the spawner threads; they end when it is dropped.
#[derive(Debug)]
pub struct Spawners {
    requests: Requests,
}

impl Spawners {
    /// Starts this many threads. Their answers are readable on the second value.
    ///
    /// With a filter they make commands that are confined by it, which are born with it, and no
    /// others; without one they make none that is confined.
    pub fn start(
        threads: usize,
        mechanism: Mechanism,
        filter: Option<Arc<Filter>>,
    ) -> Result<(Self, Answers), Failure> {
        let unable = failed_at(Step::Clone);
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(&unable)?;
        crate::pipe::set_nonblocking(&ours).map_err(&unable)?;
        let requests = Requests::default();
        let (ready, started) = channel();
        let threads = (0..threads).map(|number| {
            let (orders, ready, socket) = (requests.orders(), ready.clone(), theirs.as_raw_fd());
            let filter = filter.clone();
            let builder = thread::Builder::new().name(format!("spawner-{number}"));
            builder.spawn(move || run(socket, (mechanism, filter), &orders, ready)).map(drop)
        });
        let threads: Vec<io::Result<()>> = threads.collect();
        drop(ready);
        // Until all have copied the descriptor table or failed, `theirs` stays open in ours.
        let started: Vec<Result<(), Failure>> = started.into_iter().collect();
        let no_thread = |error| unable(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN));
        threads.into_iter().collect::<io::Result<()>>().map_err(no_thread)?;
        started.into_iter().collect::<Result<(), Failure>>()?;
        Ok((Self { requests }, Answers::new(ours)))
    }

    /// Asks for a child. The answer comes with this id, unless all spawners are gone (`false`).
    pub fn submit(&self, id: u64, request: Request) -> bool {
        self.requests.submit(id, request)
    }
}

fn run(
    socket: RawFd,
    kind: (Mechanism, Option<Arc<Filter>>),
    orders: &Orders,
    ready: Sender<Result<(), Failure>>,
) {
    block_signals();
    match Spawner::new(socket, kind) {
        Ok(mut spawner) => {
            // The starter waits for every answer, so it is there.
            _ = ready.send(Ok(()));
            drop(ready);
            spawner.serve(orders);
        }
        Err(failure) => _ = ready.send(Err(failure)),
    }
}

struct Spawner {
    table: Table,
    stack: Stack,
    mechanism: Mechanism,
    /// On this thread, and so on every child of it.
    filter: Option<Arc<Filter>>,
    births: Births,
    rulesets: Rulesets,
}

impl Spawner {
    fn new(
        socket: RawFd,
        (mechanism, filter): (Mechanism, Option<Arc<Filter>>),
    ) -> Result<Self, Failure> {
        let table = Table::enter(socket).map_err(failed_at(Step::Descriptors))?;
        let stack = Stack::new().map_err(failed_at(Step::Clone))?;
        let (births, rulesets) = (Births::begin(), Rulesets::new());
        // Last: it would refuse a table of one's own.
        filter.iter().try_for_each(|filter| filter.put_on()).map_err(failed_at(Step::Filter))?;
        Ok(Self { table, stack, mechanism, filter, births, rulesets })
    }

    fn serve(&mut self, orders: &Orders) {
        while let Some((id, request)) = orders.next() {
            let attempt = catch_unwind(AssertUnwindSafe(|| self.answer(id, &request)));
            let failed = attempt.unwrap_or(Err(PANICKED));
            if let Err(failure) = failed {
                // The program has gone away if this fails, and nobody waits.
                _ = send_failure(self.table.socket.as_fd(), id, failure);
            }
        }
    }

    fn answer(&mut self, id: u64, request: &Request) -> Result<(), Failure> {
        let wanted = request.confinement.as_ref().map(|confinement| &confinement.filter);
        if wanted.map(Arc::as_ptr) != self.filter.as_ref().map(Arc::as_ptr) {
            return Err(Failure { step: Step::Filter, errno: Errno::INVAL });
        }
        let mut pipes = self.table.open(request)?;
        let (pid, pidfd) = self.spawn_patiently(request, &pipes)?;
        // Before anybody can wait for their end.
        pipes.close_childs();
        let descriptors: Vec<_> = [pidfd.as_fd()].into_iter().chain(pipes.ours()).collect();
        let sent = send_spawned(self.table.socket.as_fd(), (id, request), pid, &descriptors);
        sent.map_err(|errno| {
            drop(Child::new(pid, pidfd)); // kills it: nobody will ever own it
            Failure { step: Step::Handover, errno }
        })
    }

    /// A program that was written a moment ago may still be open for writing in some child that is
    /// between clone and exec: worth a short wait, as agents compile and run at once.
    fn spawn_patiently(&mut self, request: &Request, pipes: &Pipes) -> Result<Started, Failure> {
        for patience in [1, 5, 25] {
            match self.spawn(request, pipes) {
                Err(Failure { errno: Errno::TXTBSY, .. }) => pause(Duration::from_millis(patience)),
                answer => return answer,
            }
        }
        self.spawn(request, pipes)
    }

    fn spawn(&mut self, request: &Request, pipes: &Pipes) -> Result<Started, Failure> {
        let leaf = request.leaf.as_deref().map(open_leaf).transpose();
        let leaf = leaf.map_err(failed_at(Step::Leaf))?;
        let confining = confining(request.confinement.as_deref(), &mut self.rulesets);
        let confining = confining.map_err(failed_at(Step::Ruleset))?;
        let setup = Setup::new(request, pipes.for_child(), confining, self.births.next());
        let leaf = leaf.as_ref().map(AsFd::as_fd);
        // A refusal may be meant for the namespaces.
        let plain = leaf.is_none() && setup.namespaces() == 0;
        let made = match spawn(&setup, &mut self.stack, self.mechanism, leaf) {
            Err(Errno::NOSYS) | Err(Errno::PERM)
                if self.mechanism == Mechanism::Clone3 && plain =>
            {
                self.mechanism = Mechanism::Clone;
                spawn(&setup, &mut self.stack, self.mechanism, None)
            }
            answer => answer,
        };
        let (pid, pidfd) =
            made.map_err(|errno| Failure { step: clone_step(leaf, errno), errno })?;
        let stillborn = leaf.is_some() && !self.births.announced(pid);
        self.births.born(pid);
        match setup.failure().or(stillborn.then_some(STILLBORN)) {
            None => Ok((pid, pidfd)),
            Some(failure) => {
                // It has ended itself; whatever its status, the failure says more.
                _ = Child::new(pid, pidfd).reap();
                Err(failure)
            }
        }
    }
}

/// The ruleset is opened in the spawner's own table, from which the child copies it.
fn confining<'a>(
    confinement: Option<&'a Confinement>,
    rulesets: &'a mut Rulesets,
) -> Result<Option<Confining<'a>>, Errno> {
    let Some(confinement) = confinement else { return Ok(None) };
    Ok(Some(Confining::new(confinement, rulesets.get(&confinement.ruleset)?)))
}

/// In the spawner's own table: an open leaf must not leak into a child of somebody else.
fn open_leaf(folder: &CStr) -> Result<OwnedFd, Errno> {
    rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Too many processes or too little memory is not the leaf's fault.
fn clone_step(leaf: Option<BorrowedFd<'_>>, errno: Errno) -> Step {
    match (leaf, errno) {
        (None, _) | (Some(_), Errno::AGAIN | Errno::NOMEM) => Step::Clone,
        (Some(_), _) => Step::Leaf,
    }
}

type Started = (rustix::process::Pid, OwnedFd);

/// Killed before its first instruction: somebody has killed the leaf, see `cgroup::Leaf`. That is
/// not how the command ended, for it never began.
const STILLBORN: Failure = Failure { step: Step::Leaf, errno: Errno::CANCELED };
const PANICKED: Failure = Failure { step: Step::Clone, errno: Errno::NOTRECOVERABLE };

fn failed_at(step: Step) -> impl Fn(Errno) -> Failure {
    move |errno| Failure { step, errno }
}

/// Signals of the program are for its other threads. libc keeps its own two unblocked.
fn block_signals() {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the pointer is to a live, writable set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the set was filled in above; a null old set is allowed.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut()) };
}

#[expect(
    clippy::disallowed_methods,
    reason = "time is the subject: the writer is in another child"
)]
fn pause(time: Duration) {
    thread::sleep(time);
}
