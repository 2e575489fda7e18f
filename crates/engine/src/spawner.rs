//! Who makes the children: a request in; descriptors, a pidfd and an exit to await out.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lastbyte_sys::Errno;
use lastbyte_sys::readiness::{self, Interest};
use lastbyte_sys::spawn::{Answers, Failure, Mechanism, Request, Spawned, Spawners, Step};
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

/// The one place where children come from.
pub trait Spawner: Send + Sync + fmt::Debug {
    /// Dropping the future does not stop the spawn; a child that nobody takes is killed.
    fn spawn(&self, request: Request) -> SpawnFuture<'_>;
}

/// A spawn under way.
pub type SpawnFuture<'a> = Pin<Box<dyn Future<Output = Result<Spawned, Failure>> + Send + 'a>>;

type Pending = Mutex<HashMap<u64, oneshot::Sender<Result<Spawned, Failure>>>>;

/// Children of this very program, made by threads with descriptor tables of their own.
#[derive(Debug)]
pub struct InProcess {
    spawners: Spawners,
    pending: Arc<Pending>,
    next: AtomicU64,
}

impl InProcess {
    /// Must be called on a runtime, which from then on delivers the answers.
    pub fn start(threads: usize, mechanism: Mechanism) -> io::Result<Self> {
        let (spawners, answers) = Spawners::start(threads, mechanism)?;
        let pending = Arc::new(Pending::default());
        let answers = readiness::watch(answers, Interest::READABLE)?;
        tokio::spawn(deliver(answers, Arc::clone(&pending)));
        Ok(Self { spawners, pending, next: AtomicU64::new(0) })
    }
}

impl Spawner for InProcess {
    fn spawn(&self, request: Request) -> SpawnFuture<'_> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        lock(&self.pending).insert(id, reply);
        if !self.spawners.submit(id, request) {
            lock(&self.pending).remove(&id);
        }
        // No answer means that spawners or courier are gone, and with them every hope of one.
        Box::pin(async move { answer.await.unwrap_or(Err(NO_SPAWNER)) })
    }
}

const NO_SPAWNER: Failure = Failure { step: Step::Clone, errno: Errno::NOTRECOVERABLE };

/// Hands each answer to whoever waits for it. One that nobody takes is dropped, which kills it.
async fn deliver(answers: AsyncFd<Answers>, pending: Arc<Pending>) {
    while let Ok(mut ready) = answers.readable().await {
        match answers.get_ref().receive() {
            Ok(Some(answer)) => {
                let reply = lock(&pending).remove(&answer.id);
                if let Some(reply) = reply {
                    _ = reply.send(answer.result); // given back and dropped: killed
                }
            }
            Err(Errno::AGAIN) => ready.clear_ready(),
            Ok(None) | Err(_) => break,
        }
    }
    lock(&pending).clear();
}

fn lock(
    pending: &Pending,
) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<Spawned, Failure>>>> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}
