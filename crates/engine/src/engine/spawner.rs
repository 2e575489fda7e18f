//! Creates the children: takes a request and the child's ends, returns an unreaped child.
//!
//! A spawn fails only if the command has not run. The child's ends reserve a place for the pidfd in
//! the descriptor table: they are closed when the answer arrives. If another thread takes the place
//! at that instant, the pidfd is opened as soon as there is space again.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lastbyte_sys::confine::Filter;
use lastbyte_sys::readiness::{self, Interest};
use lastbyte_sys::spawn::{
    Answers, ChildEnds, Failure, Mechanism, Request, Spawned, Spawners, Step,
};
use lastbyte_sys::{Child, Errno};
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

/// The only source of children.
pub trait Spawner: Send + Sync + fmt::Debug {
    /// Dropping the future does not stop the spawn; a child that is not taken is killed.
    fn spawn(&self, request: Request, ends: ChildEnds) -> SpawnFuture<'_>;
}

/// A spawn in progress.
pub type SpawnFuture<'a> = Pin<Box<dyn Future<Output = Result<Child, Failure>> + Send + 'a>>;

/// The starts that wait for an answer, by id; `None` once no more answers will be delivered.
type Pending = Mutex<Option<HashMap<u64, Waiting>>>;

/// A start that waits for its child. The ends reserve a place for the pidfd.
#[derive(Debug)]
struct Waiting {
    reply: oneshot::Sender<Result<Spawned, Failure>>,
    ends: Arc<ChildEnds>,
}

/// How long to wait before retrying when descriptors are short.
const SHORTAGE: Duration = Duration::from_millis(10);

/// Creates children of this program on threads with private descriptor tables.
#[derive(Debug)]
pub struct InProcess {
    threads: usize,
    mechanism: Mechanism,
    /// Delivers all answers, whichever runtime asks for a child first.
    runtime: Handle,
    free: Threads,
    /// Threads with a filter installed, started for the first command that is confined by it.
    filtered: Mutex<Vec<Filtered>>,
}

type Filtered = (Arc<Filter>, Arc<Threads>);

/// A group of identical threads, and the starts that wait for their answers.
#[derive(Debug)]
struct Threads {
    spawners: Spawners,
    pending: Arc<Pending>,
    next: AtomicU64,
}

impl InProcess {
    /// Must be called on a runtime, which then delivers the answers.
    pub fn start(threads: usize, mechanism: Mechanism) -> io::Result<Self> {
        let runtime = Handle::current();
        let free = Threads::start((threads, mechanism), None, &runtime);
        let free = free.map_err(|failure| failure.errno)?;
        Ok(Self { threads, mechanism, runtime, free, filtered: Mutex::default() })
    }

    /// The first call for each filter blocks for about a millisecond.
    fn filtered(&self, filter: &Arc<Filter>) -> Result<Arc<Threads>, Failure> {
        let mut filtered = self.filtered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, threads)) = filtered.iter().find(|(known, _)| Arc::ptr_eq(known, filter)) {
            return Ok(Arc::clone(threads));
        }
        let kind = (self.threads, self.mechanism);
        let threads = Threads::start(kind, Some(Arc::clone(filter)), &self.runtime)?;
        let threads = Arc::new(threads);
        filtered.push((Arc::clone(filter), Arc::clone(&threads)));
        Ok(threads)
    }
}

impl Spawner for InProcess {
    fn spawn(&self, request: Request, ends: ChildEnds) -> SpawnFuture<'_> {
        let answer = match &request.confinement {
            None => self.free.submit(request, ends),
            Some(confinement) => {
                let threads = self.filtered(&confinement.filter);
                threads.and_then(|threads| threads.submit(request, ends))
            }
        };
        // A dropped reply means that the spawners or the delivery task are gone.
        Box::pin(async move { until_held(answer?.await.unwrap_or(Err(NO_SPAWNER))?).await })
    }
}

async fn until_held(mut spawned: Spawned) -> Result<Child, Failure> {
    loop {
        spawned = match spawned {
            Spawned::Held(child) => return Ok(child),
            Spawned::Lost => return Err(LOST),
            Spawned::Unheld(unheld) => {
                sleep_until(Instant::now() + SHORTAGE).await;
                unheld.hold()
            }
        };
    }
}

impl Threads {
    fn start(
        (threads, mechanism): (usize, Mechanism),
        filter: Option<Arc<Filter>>,
        runtime: &Handle,
    ) -> Result<Self, Failure> {
        let _entered = runtime.enter();
        let (spawners, answers) = Spawners::start(threads, mechanism, filter)?;
        let pending = Arc::new(Mutex::new(Some(HashMap::new())));
        let answers = readiness::watch(answers, Interest::READABLE).map_err(|error| Failure {
            step: Step::Handover,
            errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        })?;
        // Created here, because the task may be dropped before it ever runs.
        let no_more_answers = NoMoreAnswers(Arc::clone(&pending));
        runtime.spawn(deliver(answers, no_more_answers));
        Ok(Self { spawners, pending, next: AtomicU64::new(0) })
    }

    fn submit(
        &self,
        request: Request,
        ends: ChildEnds,
    ) -> Result<oneshot::Receiver<Result<Spawned, Failure>>, Failure> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        let ends = Arc::new(ends);
        let waiting = Waiting { reply, ends: Arc::clone(&ends) };
        let waits = lock(&self.pending).as_mut().map(|pending| pending.insert(id, waiting));
        waits.ok_or(NO_SPAWNER)?;
        self.spawners.submit(id, request, &ends).inspect_err(|_| {
            lock(&self.pending).as_mut().and_then(|pending| pending.remove(&id));
        })?;
        Ok(answer)
    }
}

const NO_SPAWNER: Failure = Failure { step: Step::Clone, errno: Errno::NOTRECOVERABLE };
/// The only failure of a command that has run: descriptors were short, and another part of this
/// program, which waits for children it did not start, has reaped it.
const LOST: Failure = Failure { step: Step::Held, errno: Errno::SRCH };

/// Delivers each answer to the start that waits for it. An answer that is not taken is dropped,
/// which kills the child.
async fn deliver(answers: AsyncFd<Answers>, pending: NoMoreAnswers) {
    while let Ok(mut ready) = answers.readable().await {
        match answers.get_ref().receive() {
            Ok(Some(answer)) => {
                let waiting = lock(&pending.0).as_mut().and_then(|all| all.remove(&answer.id));
                if let Some(Waiting { reply, ends }) = waiting {
                    // Close them before anything waits for the output to end.
                    drop(ends);
                    _ = reply.send(answer.result.map(hold)); // if not taken, it is dropped and killed
                }
            }
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(Errno::INTR | Errno::NOMEM | Errno::NOBUFS) => tokio::task::yield_now().await,
            Ok(None) | Err(_) => break,
        }
    }
}

/// Opens the pidfd in the place that was just freed, if it has none yet.
fn hold(spawned: Spawned) -> Spawned {
    match spawned {
        Spawned::Unheld(unheld) => unheld.hold(),
        spawned => spawned,
    }
}

/// Fails all current and future waiters when the delivery task ends, by itself or with its runtime.
struct NoMoreAnswers(Arc<Pending>);

impl Drop for NoMoreAnswers {
    fn drop(&mut self) {
        *lock(&self.0) = None;
    }
}

fn lock(pending: &Pending) -> MutexGuard<'_, Option<HashMap<u64, Waiting>>> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}
