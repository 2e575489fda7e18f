//! What every door shares: the engine, the limits and the request to shut down.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use axum::http::Extensions;
use bytes::Bytes;
use hyper::body::Body;
use lastbyte_engine::{Engine, Id, Process, Session};
use lastbyte_wire::{Error, ErrorCode, KeeperHealth};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::doors::websocket::Messages;
use crate::listen::body::collect;
use crate::listen::{ClientOf, CreatedTokens, Grant, Pages, Scope, Traffic};
use crate::verbs::lines::LineIndexes;
use crate::verbs::read::Checkpoints;
use crate::verbs::start::Claimed;
use crate::{Answers, Limits, Sandboxing, to_wire};

const KIB: usize = 1024;

/// The keeper of a server: the process that starts another one when it crashes.
#[derive(Debug)]
pub struct KeptBy {
    pub pid: u32,
    pub worker_started: SystemTime,
    pub restarts: u32,
    /// How the last worker crashed.
    pub last_crash: Option<String>,
    pub is_gone: AtomicBool,
    pub upgrades: mpsc::Sender<UpgradeAsked>,
}

/// A client asks for an upgrade to this program.
#[derive(Debug)]
pub struct UpgradeAsked {
    pub binary: PathBuf,
    /// The version of the program, if the server is about to run it, or why it is not.
    pub answer: oneshot::Sender<Result<String, String>>,
}

impl KeptBy {
    fn health(&self) -> Option<KeeperHealth> {
        let health = KeeperHealth {
            pid: self.pid,
            worker_pid: std::process::id(),
            worker_started_unix_ns: to_wire::unix_ns(self.worker_started),
            restarts: self.restarts,
            last_crash: self.last_crash.clone(),
        };
        (!self.is_gone.load(Ordering::Relaxed)).then_some(health)
    }
}

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct App {
    pub engine: Engine,
    pub limits: Limits,
    pub started: SystemTime,
    /// What is told of the keeper that has started this server, if one has.
    pub keeper: Option<Arc<KeptBy>>,
    pub sandboxing: Sandboxing,
    /// For the server that its requests come through to count in.
    pub traffic: Arc<Traffic>,
    pub answers: Arc<Answers>,
    waits: Arc<Semaphore>,
    long_reads: Arc<Semaphore>,
    pub(crate) screens: Checkpoints,
    /// Memory for request bodies that are being received, in KiB.
    bodies: Arc<Semaphore>,
    /// Memory for messages of attached clients.
    pub(crate) messages: Messages,
    /// Where the lines of logs begin.
    pub(crate) line_indexes: Arc<LineIndexes>,
    shutdown: Arc<Notify>,
    /// What the client of a request may see and do.
    pub(crate) scope: Scope,
    /// For how long, and whether it is a page.
    pub(crate) grant: Grant,
    /// The processes that it is connected to.
    pub(crate) client_of: ClientOf,
    /// What is known elsewhere of the start that it asks for.
    pub(crate) claimed: Option<Claimed>,
    /// `None` for a server whose tokens cannot be managed.
    pub(crate) tokens: Option<Arc<CreatedTokens>>,
    /// Links, and the pages that have come by them.
    pub(crate) pages: Arc<Pages>,
}

impl App {
    pub fn new(engine: Engine, limits: Limits) -> Self {
        Self {
            engine,
            limits,
            started: SystemTime::now(),
            keeper: None,
            sandboxing: Sandboxing::default(),
            traffic: Arc::new(Traffic::new(&limits)),
            answers: Arc::default(),
            waits: Arc::new(Semaphore::new(limits.waits)),
            long_reads: Arc::new(Semaphore::new(limits.long_reads)),
            screens: Checkpoints::default(),
            bodies: Arc::new(Semaphore::new(limits.bodies_bytes / KIB)),
            messages: Messages::new(&limits),
            line_indexes: Arc::default(),
            shutdown: Arc::new(Notify::new()),
            scope: Scope::All,
            grant: Grant::all(),
            client_of: ClientOf::default(),
            claimed: None,
            tokens: None,
            pages: Arc::new(Pages::in_memory()),
        }
    }

    /// With a keeper, which has been running for this long.
    pub fn kept_by(self, keeper: Arc<KeptBy>, uptime: Duration) -> Self {
        let started = self.started.checked_sub(uptime).unwrap_or(self.started);
        Self { keeper: Some(keeper), started, ..self }
    }

    /// With another word on policies than that every command may do everything.
    pub fn sandboxed(self, sandboxing: Sandboxing) -> Self {
        Self { sandboxing, ..self }
    }

    /// With the tokens that clients can create.
    pub fn with_tokens(self, tokens: Arc<CreatedTokens>) -> Self {
        Self { tokens: Some(tokens), ..self }
    }

    /// With the links and pages of the server that its requests come through.
    pub fn with_pages(self, pages: Arc<Pages>) -> Self {
        Self { pages, ..self }
    }

    /// As the client of a request with these extensions sees it; `None` if it was not admitted.
    pub(crate) fn seen_by(&self, extensions: &Extensions) -> Option<Self> {
        let grant = extensions.get::<Grant>()?.clone();
        let client_of = extensions.get::<ClientOf>().cloned().unwrap_or_default();
        let claimed = extensions.get::<Claimed>().cloned();
        Some(Self { client_of, claimed, ..self.within(grant.scope.clone()) }.granted(grant))
    }

    fn granted(self, grant: Grant) -> Self {
        Self { grant, ..self }
    }

    /// As a client with this scope sees it.
    pub(crate) fn within(&self, scope: Scope) -> Self {
        Self { scope, ..self.clone() }
    }

    /// The session that the client is bound to.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.scope.within()
    }

    /// The process with this id, written exactly so, if the client may see it.
    pub fn process(&self, id: &str) -> Option<Process> {
        let parsed = id.parse::<Id>().ok().filter(|parsed| parsed.to_string() == id);
        let process = parsed.and_then(|id| self.engine.get(id));
        let process = process.filter(|process| self.reaches(process))?;
        self.client_of.add(&process);
        Some(process)
    }

    /// Whether the client may see this process.
    pub(crate) fn reaches(&self, process: &Process) -> bool {
        self.session().is_none_or(|own| process.spec().session.as_ref() == Some(own))
            && self.scope.only().is_none_or(|own| process.id() == own)
    }

    /// Counts a request as waiting for as long as the permit lives.
    pub fn begin_wait(&self) -> Result<OwnedSemaphorePermit, Error> {
        Arc::clone(&self.waits).try_acquire_owned().map_err(|_| {
            let most = self.limits.waits;
            let message = format!("wait limit reached ({most} requests are waiting)");
            Error::new(ErrorCode::TooManyWaits, message).hint("try again in a moment")
        })
    }

    /// The keeper, as long as it lives.
    pub(crate) fn keeper_health(&self) -> Option<KeeperHealth> {
        self.keeper.as_ref()?.health()
    }

    /// How many requests are waiting.
    pub fn waits(&self) -> usize {
        self.limits.waits.saturating_sub(self.waits.available_permits())
    }

    /// Waits until one more long read may take a thread and a core.
    pub async fn long_read_turn(&self) -> Option<OwnedSemaphorePermit> {
        // Nobody ever closes it.
        Arc::clone(&self.long_reads).acquire_owned().await.ok()
    }

    /// The body of a request, once there is memory for it beside the others being received.
    pub async fn body<B>(&self, body: B) -> Result<Bytes, Error>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let hint = body.size_hint();
        // One that does not say may be as large as is taken.
        let bytes = usize::try_from(hint.upper().unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let kib = bytes.min(self.limits.body_bytes).min(self.limits.bodies_bytes) / KIB;
        let kib = u32::try_from(kib).unwrap_or(u32::MAX);
        let permit = timeout(self.limits.body_time, self.bodies.acquire_many(kib)).await;
        let _permit = permit.map_err(|_| self.too_many_bodies())?;
        collect(body, &self.limits).await
    }

    fn too_many_bodies(&self) -> Error {
        let most = self.limits.bodies_bytes;
        let message = format!("request body limit reached ({most} bytes are being received)");
        Error::new(ErrorCode::TooManyBodies, message).hint("try again in a moment")
    }

    /// A client asks the server to shut down.
    pub fn ask_for_shutdown(&self) {
        self.shutdown.notify_one();
    }

    /// Waits until a client does.
    pub async fn shutdown_asked(&self) {
        self.shutdown.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::{Pin, pin};
    use std::task::Poll;
    use std::time::Duration;

    use http_body_util::Full;
    use lastbyte_engine::Settings;

    use super::*;

    fn app(state: &std::path::Path, body_time: Duration) -> App {
        let engine = Engine::new(Settings::new(state)).unwrap();
        let limits =
            Limits { body_bytes: 4096, bodies_bytes: 4096, body_time, ..Limits::default() };
        App::new(engine, limits)
    }

    /// A body of this many bytes that never comes.
    struct Announced(u64);

    impl Body for Announced {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, std::io::Error>>> {
            Poll::Pending
        }

        fn size_hint(&self) -> hyper::body::SizeHint {
            hyper::body::SizeHint::with_exact(self.0)
        }
    }

    async fn is_ready<T>(mut future: Pin<&mut impl Future<Output = T>>) -> bool {
        poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
    }

    #[tokio::test]
    async fn a_body_waits_until_there_is_room_for_it() {
        let state = tempfile::tempdir().unwrap();
        let app = app(state.path(), Duration::from_secs(3600));
        let mut first = Box::pin(app.body(Announced(4096)));
        assert!(!is_ready(first.as_mut()).await);
        let mut second = pin!(app.body(Full::from(vec![b'x'; 2048])));
        assert!(!is_ready(second.as_mut()).await, "there is no room for both");
        drop(first);
        assert_eq!(second.await.unwrap().len(), 2048);
    }

    #[tokio::test]
    async fn a_body_that_finds_no_room_in_time_is_refused_by_the_bounds_name() {
        let state = tempfile::tempdir().unwrap();
        let app = app(state.path(), Duration::from_millis(10));
        let held = app.bodies.acquire_many(4).await.unwrap();
        let refused = app.body(Full::from(vec![b'x'; 2048])).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::TooManyBodies);
        assert!(refused.message.contains("4096 bytes"), "{refused}");
        drop(held);
    }
}
