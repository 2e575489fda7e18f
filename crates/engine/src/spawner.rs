//! Who makes the children: a request in; descriptors, a pidfd and an exit to await out.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastbyte_sys::Errno;
use lastbyte_sys::confine::Filter;
use lastbyte_sys::readiness::{self, Interest};
use lastbyte_sys::spawn::{Answers, Failure, Mechanism, Request, Spawned, Spawners, Step};
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// The one place where children come from.
pub trait Spawner: Send + Sync + fmt::Debug {
    /// Dropping the future does not stop the spawn; a child that nobody takes is killed.
    fn spawn(&self, request: Request) -> SpawnFuture<'_>;
}

/// A spawn under way.
pub type SpawnFuture<'a> = Pin<Box<dyn Future<Output = Result<Spawned, Failure>> + Send + 'a>>;

/// Who waits for which answer; `None` once nobody delivers any more.
type Pending = Mutex<Option<HashMap<u64, Reply>>>;
type Reply = oneshot::Sender<Result<Spawned, Failure>>;

/// Children of this very program, made by threads with descriptor tables of their own.
#[derive(Debug)]
pub struct InProcess {
    threads: usize,
    mechanism: Mechanism,
    /// Which delivers the answers of all, whoever asks for a child first.
    runtime: Handle,
    free: Threads,
    /// Those with a filter on them, made when the first command is to be confined by it.
    filtered: Mutex<Vec<Filtered>>,
}

type Filtered = (Arc<Filter>, Arc<Threads>);

/// Threads that do the same, and who waits for their answers.
#[derive(Debug)]
struct Threads {
    spawners: Spawners,
    pending: Arc<Pending>,
    next: AtomicU64,
}

impl InProcess {
    /// Must be called on a runtime, which from then on delivers the answers.
    pub fn start(threads: usize, mechanism: Mechanism) -> io::Result<Self> {
        let runtime = Handle::current();
        let free = Threads::start((threads, mechanism), None, &runtime);
        let free = free.map_err(|failure| failure.errno)?;
        Ok(Self { threads, mechanism, runtime, free, filtered: Mutex::default() })
    }

    /// The first of each filter blocks for a millisecond.
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
    fn spawn(&self, request: Request) -> SpawnFuture<'_> {
        let answer = match &request.confinement {
            None => Ok(self.free.submit(request)),
            Some(confinement) => {
                self.filtered(&confinement.filter).map(|threads| threads.submit(request))
            }
        };
        // A reply that is dropped means that spawners or courier are gone.
        Box::pin(async move { answer?.await.unwrap_or(Err(NO_SPAWNER)) })
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
        // Made here and not by the task, which may be dropped before it has run at all.
        let pending_for_courier = NoMoreAnswers(Arc::clone(&pending));
        runtime.spawn(deliver(answers, pending_for_courier));
        Ok(Self { spawners, pending, next: AtomicU64::new(0) })
    }

    fn submit(&self, request: Request) -> oneshot::Receiver<Result<Spawned, Failure>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        let waiting = lock(&self.pending).as_mut().map(|pending| pending.insert(id, reply));
        if waiting.is_none() || !self.spawners.submit(id, request) {
            lock(&self.pending).as_mut().and_then(|pending| pending.remove(&id));
        }
        answer
    }
}

const NO_SPAWNER: Failure = Failure { step: Step::Clone, errno: Errno::NOTRECOVERABLE };

/// Hands each answer to whoever waits for it. One that nobody takes is dropped, which kills it.
async fn deliver(answers: AsyncFd<Answers>, pending: NoMoreAnswers) {
    while let Ok(mut ready) = answers.readable().await {
        match answers.get_ref().receive() {
            Ok(Some(answer)) => {
                let reply = lock(&pending.0).as_mut().and_then(|all| all.remove(&answer.id));
                if let Some(reply) = reply {
                    _ = reply.send(answer.result); // given back and dropped: killed
                }
            }
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(Errno::INTR | Errno::NOMEM | Errno::NOBUFS) => tokio::task::yield_now().await,
            Ok(None) | Err(_) => break,
        }
    }
}

/// Answers everybody who waits, and everybody who would, when the courier goes: at the end of its
/// loop or with its runtime.
struct NoMoreAnswers(Arc<Pending>);

impl Drop for NoMoreAnswers {
    fn drop(&mut self) {
        *lock(&self.0) = None;
    }
}

fn lock(pending: &Pending) -> MutexGuard<'_, Option<HashMap<u64, Reply>>> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}
