//! Listeners, their connections, and the end of both.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use lastbyte_wire::{Error, ErrorCode};
use rustix::io::Errno;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::auth::{self, Access};
use super::connection::{self, Caller, Shared};
use super::host::Hosts;
use super::listener::Listener;
use super::memory::give_back_after_connections;
use super::peer::Peer;
use super::phase::{Phase, Phases, phases};
use super::slots::{Kind, SocketSlot};
use super::socket::{Socket, Stream};
use super::traffic::Traffic;
use crate::Limits;

/// Listeners, and the rules for their clients.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<Listener>,
    hosts: Hosts,
    limits: Limits,
    traffic: Arc<Traffic>,
}

/// How many rejected connections are told why at one time; more are closed without an answer.
const MAX_REJECTING: usize = 64;
/// How long to wait after accepting failed, for example for want of a descriptor.
const REST: Duration = Duration::from_millis(100);
/// After this long without a connection the file of a unix socket is checked.
const LOOK: Duration = Duration::from_secs(2);

impl Server {
    pub fn new(listeners: Vec<Listener>, hosts: Hosts, limits: Limits) -> Self {
        let traffic = Arc::new(Traffic::new(&limits));
        Self { listeners, hosts, limits, traffic }
    }

    /// With its connections counted, and bounded, here.
    pub fn counted_in(self, traffic: Arc<Traffic>) -> Self {
        Self { traffic, ..self }
    }

    /// Answers requests by the router until `shutdown`. Then nothing more is accepted, the files of
    /// unix sockets are removed, idle connections are closed and the others have until `cut`, which
    /// is looked at only from then on. Connections that were upgraded are their handlers' to end.
    pub async fn run(
        self,
        router: Router,
        shutdown: impl Future<Output = ()>,
        cut: impl Future<Output = ()>,
    ) {
        let (announcer, phases) = phases();
        let Self { listeners, hosts, limits, traffic } = self;
        let acceptor = Arc::new(Acceptor {
            shared: Arc::new(Shared::new(router, hosts, limits, traffic)),
            rejected: Arc::new(Semaphore::new(MAX_REJECTING)),
        });
        let traffic = Arc::clone(&acceptor.shared.traffic);
        tokio::spawn(give_back_after_connections(traffic, phases.clone()));
        for listener in listeners {
            tokio::spawn(accept_all(listener, Arc::clone(&acceptor), phases.clone()));
        }
        drop(phases);
        shutdown.await;
        announcer.announce(Phase::Draining);
        tokio::select! {
            () = announcer.until_all_ended() => return,
            () = cut => {}
        }
        announcer.announce(Phase::Cut);
        announcer.until_all_ended().await;
    }
}

/// Gives connections their slots and starts their tasks.
#[derive(Debug)]
struct Acceptor {
    shared: Arc<Shared>,
    rejected: Arc<Semaphore>,
}

async fn accept_all(mut listener: Listener, acceptor: Arc<Acceptor>, mut phases: Phases) {
    let mut failing = false;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = phases.until(Phase::Draining) => return,
            () = sleep_until(Instant::now() + LOOK) => {
                recreate_socket_file(&mut listener, &mut failing);
                continue;
            }
        };
        match accepted {
            Ok((stream, peer)) => {
                acceptor.take(stream, peer, listener.access().clone(), phases.clone());
                failing = false;
            }
            Err(error) if is_peer_error(&error) => {}
            Err(error) => {
                if !failing {
                    tracing::warn!(%listener, %error, "cannot accept connections");
                }
                failing = true;
                // A connection without a request gives up its descriptor.
                if is_out_of_descriptors(&error)
                    && acceptor.shared.traffic.slots().free_descriptor()
                {
                    acceptor.shared.traffic.count_refusal(ErrorCode::TooManyConnections);
                }
                sleep_until(Instant::now() + REST).await;
            }
        }
    }
}

/// No client can connect to a socket whose file is gone, so it is enough to check after a while
/// without connections.
fn recreate_socket_file(listener: &mut Listener, failing: &mut bool) {
    match listener.recreate_if_removed() {
        Ok(true) => tracing::error!(%listener, "the socket file was removed; created it again"),
        Ok(false) => *failing = false,
        Err(error) if !*failing => {
            *failing = true;
            tracing::error!(%listener, %error, "the socket file was removed and cannot be created");
        }
        Err(_) => {}
    }
}

/// The connection failed before it was accepted; the next one need not.
fn is_peer_error(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    let of_one = [Errno::CONNABORTED, Errno::CONNRESET, Errno::INTR, Errno::PERM, Errno::PROTO];
    errno.is_some_and(|errno| of_one.contains(&errno))
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| [Errno::MFILE, Errno::NFILE].contains(&errno))
}

impl Acceptor {
    fn take(&self, stream: Stream, peer: Peer, access: Access, phases: Phases) {
        let limits = self.shared.limits;
        if let Some(error) = auth::unchecked(&peer) {
            return self.reject(stream, peer, error, phases);
        }
        let kind = kind(&stream);
        let Some((slot, eviction)) = self.shared.traffic.take_slot(kind) else {
            return self.reject(stream, peer, self.too_many_connections(kind), phases);
        };
        let socket = Socket::new(stream, &limits, SocketSlot::Slot(Arc::clone(&slot)));
        let caller = Caller { peer, access, slot };
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let traffic = Arc::clone(&shared.traffic);
            tokio::select! {
                () = connection::serve(socket, caller, shared, phases) => {}
                () = eviction.evicted() => {
                    traffic.count_evicted();
                    tracing::debug!(%peer, "connection closed to make room: it had no request");
                }
            }
        });
    }

    fn too_many_connections(&self, kind: Kind) -> Error {
        let most = self.shared.traffic.slots().most(kind);
        Error::new(ErrorCode::TooManyConnections, format!("connection limit reached ({most})"))
            .hint("close a connection, or try again in a moment")
    }

    fn reject(&self, stream: Stream, peer: Peer, error: Error, mut phases: Phases) {
        let Ok(slot) = Arc::clone(&self.rejected).try_acquire_owned() else { return };
        let socket = Socket::new(stream, &self.shared.limits, SocketSlot::Rejected(slot));
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            tokio::select! {
                () = connection::reject(socket, peer, error, shared) => {}
                () = phases.until(Phase::Cut) => {}
            }
        });
    }
}

fn kind(stream: &Stream) -> Kind {
    match stream {
        Stream::Unix(_) => Kind::Unix,
        Stream::Tcp(_) => Kind::Tcp,
    }
}
