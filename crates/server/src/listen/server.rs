//! Listeners, their connections, and the end of both.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use lastbyte_wire::{Error, ErrorCode};
use rustix::io::Errno;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::auth::{self, Access};
use super::client_of::ClientOf;
use super::connection::{self, Caller, Shared};
use super::host::Hosts;
use super::listener::Listener;
use super::memory::give_back_after_connections;
use super::pages::{PageListener, Pages};
use super::peer::Peer;
use super::socket::{Socket, Stream};
use super::stage::{Stage, Stages, until};
use super::traffic::{Kind, Traffic};
use crate::Limits;

/// Listeners, and the rules for their clients.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<Listener>,
    hosts: Hosts,
    limits: Limits,
    traffic: Arc<Traffic>,
    pages: Arc<Pages>,
}

/// How long to wait after accepting failed, for example for want of a descriptor.
const REST: Duration = Duration::from_millis(100);
/// After this long without a connection the file of a unix socket is checked.
const LOOK: Duration = Duration::from_secs(2);

impl Server {
    pub fn new(listeners: Vec<Listener>, hosts: Hosts, limits: Limits) -> Self {
        let traffic = Arc::new(Traffic::new(&limits));
        Self { listeners, hosts, limits, traffic, pages: Arc::new(Pages::in_memory()) }
    }

    /// With its connections counted, and bounded, here.
    pub fn counted_in(self, traffic: Arc<Traffic>) -> Self {
        Self { traffic, ..self }
    }

    /// With these links and pages, for which it may open a port.
    pub fn with_pages(self, pages: Arc<Pages>) -> Self {
        pages.served_at(self.listeners.iter().filter_map(Listener::address).collect());
        Self { pages, ..self }
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
        let (stage, stages) = watch::channel(Stage::Open);
        let Self { listeners, hosts, limits, traffic, pages } = self;
        let shared = Arc::new(Shared::new(
            router,
            hosts,
            limits,
            (Arc::clone(&traffic), Arc::clone(&pages)),
        ));
        tokio::spawn(give_back_after_connections(traffic, stages.clone()));
        for listener in listeners {
            tokio::spawn(accept_all(listener, Arc::clone(&shared), stages.clone()));
        }
        let serving_pages = tokio::spawn(serve_pages(pages, shared, stages));
        shutdown.await;
        serving_pages.abort();
        stage.send_replace(Stage::Draining);
        tokio::select! {
            () = stage.closed() => return,
            () = cut => {}
        }
        stage.send_replace(Stage::Cut);
        stage.closed().await;
    }
}

/// Opens and closes the port for pages, and ends those that have left.
async fn serve_pages(pages: Arc<Pages>, shared: Arc<Shared>, stages: Stages) {
    let listening = async {
        loop {
            let (listener, port) = pages.next_listener().await.into_parts();
            tracing::info!(%listener, "listening for pages");
            let (shared, stages) = (Arc::clone(&shared), stages.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = accept_all(listener, shared, stages) => {}
                    () = PageListener::until_closed(port) => {}
                }
            });
        }
    };
    tokio::select! {
        () = listening => {}
        () = Arc::clone(&pages).tend() => {}
    }
}

async fn accept_all(mut listener: Listener, shared: Arc<Shared>, mut stages: Stages) {
    let mut failing = false;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = until(&mut stages, Stage::Draining) => return,
            () = sleep_until(Instant::now() + LOOK) => {
                recreate_socket_file(&mut listener, &mut failing);
                continue;
            }
        };
        match accepted {
            Ok((stream, peer, access)) => {
                take(&shared, stream, (peer, access), stages.clone());
                failing = false;
            }
            Err(error) if is_peer_error(&error) => {}
            Err(error) => {
                if !failing {
                    tracing::warn!(%listener, %error, "cannot accept connections");
                }
                failing = true;
                // A connection without a request gives up its descriptor.
                if is_out_of_descriptors(&error) && shared.traffic.free_descriptor() {
                    shared.traffic.count_refusal(ErrorCode::TooManyConnections);
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
    let of_one = [Errno::CONNABORTED, Errno::CONNRESET, Errno::INTR, Errno::PERM, Errno::PROTO];
    Errno::from_io_error(error).is_some_and(|errno| of_one.contains(&errno))
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Gives a connection its slot and starts its task.
fn take(shared: &Arc<Shared>, stream: Stream, (peer, access): (Peer, Access), stages: Stages) {
    if let Some(error) = auth::unchecked(&peer) {
        return reject(shared, stream, (peer, error), stages);
    }
    let kind = match peer {
        Peer::Unix { .. } => Kind::Unix,
        Peer::Tcp(_) | Peer::Carried => Kind::Tcp,
    };
    let Some((slot, evicted)) = shared.traffic.take(kind) else {
        let message = format!("connection limit reached ({})", shared.traffic.most(kind));
        let error = Error::new(ErrorCode::TooManyConnections, message)
            .hint("close a connection, or try again in a moment");
        return reject(shared, stream, (peer, error), stages);
    };
    let socket = Socket::new(stream, &shared.limits, Some(Arc::clone(&slot)));
    let client_of = ClientOf::default();
    let caller = Caller { peer, access, slot, client_of };
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let traffic = Arc::clone(&shared.traffic);
        tokio::select! {
            () = connection::serve(socket, caller, shared, stages) => {}
            // Once it is proved nobody takes its slot.
            Ok(()) = evicted => {
                traffic.count_evicted();
                tracing::debug!(%peer, "connection closed to make room: it had no request");
            }
        }
    });
}

fn reject(shared: &Arc<Shared>, stream: Stream, (peer, error): (Peer, Error), mut stages: Stages) {
    let Ok(permit) = Arc::clone(&shared.rejecting).try_acquire_owned() else { return };
    let socket = Socket::new(stream, &shared.limits, None);
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        tokio::select! {
            () = connection::reject(socket, peer, error, shared) => {}
            () = until(&mut stages, Stage::Cut) => {}
        }
        drop(permit);
    });
}
