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

use super::connection::{self, Caller, Shared};
use super::host::Hosts;
use super::listener::Listener;
use super::peer::Peer;
use super::phase::{Phase, Phases, phases};
use super::socket::{Socket, Stream};
use super::traffic::Traffic;
use crate::Limits;

/// Some listeners and the rules for whoever comes.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<Listener>,
    hosts: Hosts,
    limits: Limits,
    traffic: Arc<Traffic>,
}

/// How many are told at one time that there is no room; more are closed without a word.
const TURNED_AWAY: usize = 64;
/// How long nothing is accepted when the machine cannot: descriptors do not come back sooner for
/// being asked for.
const REST: Duration = Duration::from_millis(100);

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
        let rooms = Arc::new(Rooms {
            shared: Arc::new(Shared { router, hosts, limits, traffic }),
            turned_away: Arc::new(Semaphore::new(TURNED_AWAY)),
        });
        for listener in listeners {
            tokio::spawn(accept_all(listener, Arc::clone(&rooms), phases.clone()));
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

/// Where connections go.
#[derive(Debug)]
struct Rooms {
    shared: Arc<Shared>,
    turned_away: Arc<Semaphore>,
}

async fn accept_all(listener: Listener, rooms: Arc<Rooms>, mut phases: Phases) {
    let mut failing = false;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = phases.until(Phase::Draining) => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                let caller = Caller { peer, access: listener.access().clone() };
                rooms.take(stream, caller, phases.clone());
                failing = false;
            }
            Err(error) if is_the_clients(&error) => {}
            Err(error) => {
                if !failing {
                    tracing::warn!(%listener, %error, "cannot accept connections");
                }
                failing = true;
                sleep_until(Instant::now() + REST).await;
            }
        }
    }
}

/// The connection failed before it was accepted; the next one need not.
fn is_the_clients(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    let of_one = [Errno::CONNABORTED, Errno::CONNRESET, Errno::INTR, Errno::PERM, Errno::PROTO];
    errno.is_some_and(|errno| of_one.contains(&errno))
}

impl Rooms {
    fn take(&self, stream: Stream, caller: Caller, phases: Phases) {
        let limits = self.shared.limits;
        if let Some(place) = self.shared.traffic.place() {
            let socket = Socket::new(stream, &limits, place);
            tokio::spawn(connection::serve(socket, caller, Arc::clone(&self.shared), phases));
        } else {
            self.turn_away(stream, caller.peer, phases);
        }
    }

    fn turn_away(&self, stream: Stream, peer: Peer, mut phases: Phases) {
        let Ok(place) = Arc::clone(&self.turned_away).try_acquire_owned() else { return };
        let most = self.shared.traffic.most_connections();
        let message = format!("there are {most} connections already, as many as are taken");
        let error = Error::new(ErrorCode::TooManyConnections, message)
            .hint("close one, or ask again in a moment");
        let socket = Socket::new(stream, &self.shared.limits, place);
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            tokio::select! {
                () = connection::turn_away(socket, peer, error, shared) => {}
                () = phases.until(Phase::Cut) => {}
            }
        });
    }
}
