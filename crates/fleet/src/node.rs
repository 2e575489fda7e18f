//! A node: a server of the fleet. Its connections come over the broker; everything else is the
//! server's own.

mod fenced;
mod membership;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::service::{Service, ServiceExt};
use axum::Router;
use futures_util::StreamExt;
use lastbyte_engine::{Engine, IdTag};
use lastbyte_server::listen::{Carried, Listener};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio::time::interval;

use crate::carry::{Streams, is_inbox};
use crate::connect::{Broker, JoinError};
use crate::placement::Bid;
use crate::subject;
use fenced::Fenced;
use membership::Membership;

pub(crate) use fenced::{CLAIM_HEADER, ClaimedKey, FENCE_HEADER, FenceWord, KEY_PATH};
pub(crate) use membership::{NODES, PRESENCE, open};

/// How a server joins.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// How many commands it runs at one time.
    pub slots: u32,
    /// Where its journal is: another folder is another server.
    pub state: PathBuf,
}

/// A server in the fleet, which listens for requests and says that it is there until this is dropped.
#[derive(Debug)]
pub struct Node {
    own: Arc<Own>,
    staying: tokio::task::JoinHandle<()>,
    carried: Option<mpsc::Receiver<Carried>>,
}

/// Between attempts to reach a broker that was never reached.
const BEFORE_NEXT_TRY: Duration = Duration::from_secs(2);

/// What the parts of a node share.
#[derive(Debug)]
struct Own {
    settings: NodeSettings,
    /// Unlike that of any other server that runs.
    server: String,
    engine: Engine,
    fence: Fenced,
    draining: AtomicBool,
}

/// Connections that the server has not accepted yet: as many as it may have, because one that finds no place is refused,
/// and its client cannot tell whether its request was carried out.
const UNACCEPTED: usize = 4096;
const WHAT_IT_IS: &str = "Runs commands for agents and tells the truth about them";

/// What all ids of a node with this name have in common.
pub fn id_tag(node: &str) -> IdTag {
    let hash = Sha256::digest(node);
    IdTag::new(u32::from_be_bytes([0, hash[0], hash[1], hash[2]]))
}

impl Node {
    /// Joins as soon as the broker can be reached and no other server has the name, however long that
    /// takes. It fails only if the credentials or the state folder cannot be read.
    pub fn join(broker: Broker, settings: NodeSettings, engine: Engine) -> Result<Self, JoinError> {
        broker.check()?;
        let failed = |source| JoinError::State { path: settings.state.clone(), source };
        let server = server_id(&settings.state).map_err(failed)?;
        let own = Arc::new(Own {
            settings,
            server,
            engine,
            fence: Fenced::default(),
            draining: AtomicBool::new(false),
        });
        let (carrier, carried) = mpsc::channel(UNACCEPTED);
        let staying = tokio::spawn(stay(broker, Arc::clone(&own), carrier));
        Ok(Self { own, staying, carried: Some(carried) })
    }

    /// Where its connections arrive. `None` but for the first time.
    pub fn listener(&mut self) -> Option<Listener> {
        self.carried.take().map(Listener::carried)
    }

    /// The router of the server, behind what only nodes do.
    pub fn guard(&self, router: Router) -> Router {
        fenced::guard(Arc::clone(&self.own), router)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.staying.abort();
    }
}

async fn stay(broker: Broker, own: Arc<Own>, carrier: mpsc::Sender<Carried>) {
    let mut tries = interval(BEFORE_NEXT_TRY);
    loop {
        tries.tick().await;
        match begin(&broker, &own, carrier.clone()).await {
            Ok(()) => tracing::info!("trying again to join the fleet"),
            Err(error) => {
                let why = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, why, "cannot join the fleet; trying again");
            }
        }
    }
}

/// What a node does in the fleet, until the connection is closed for good or another server has its
/// name. It listens only then: two servers that answer for one name would carry out requests twice.
async fn begin(
    broker: &Broker,
    own: &Arc<Own>,
    carrier: mpsc::Sender<Carried>,
) -> Result<(), JoinError> {
    let client = broker.connect(&format!("lastbyte node {}", own.settings.name)).await?;
    let mut membership = Membership::open(&client).await?;
    membership.until_name_is_free(own).await;
    // Before it can be seen that it is there.
    let listening = listen(client.clone(), Arc::clone(own), carrier).await?;
    let bidding = bid(client, Arc::clone(own)).await?;
    let Ok(stay) = membership.join(own).await else { return Ok(()) };
    tokio::select! {
        () = listening => {}
        () = bidding => {}
        () = membership.stay(own, stay) => {}
    }
    Ok(())
}

/// The same for a server that was started again on the same folder, and not for one with a copy of it,
/// in another container or on another machine. A machine that was started again has to wait until its
/// last entry has expired.
fn server_id(state: &Path) -> io::Result<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let folder = std::fs::metadata(state)?;
    let hash = Sha256::digest(format!("{} {} {}", boot.trim(), folder.dev(), folder.ino()));
    Ok(hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

/// Takes streams, as a service that the tools of the broker list.
async fn listen(
    client: Client,
    own: Arc<Own>,
    carrier: mpsc::Sender<Carried>,
) -> Result<impl Future<Output = ()>, JoinError> {
    let failed = |source| JoinError::Subscribe { source };
    let name = &own.settings.name;
    let service = client.service_builder().description(WHAT_IT_IS);
    let service = service.metadata([("node".to_owned(), name.clone())].into());
    let service = service.start("lastbyte", env!("CARGO_PKG_VERSION")).await.map_err(failed)?;
    // A group of its own: of those in one group, only one gets each message, and a connection that is
    // not closed yet would be one.
    let endpoint = service.endpoint_builder().name("connect");
    let endpoint = endpoint.queue_group(uuid::Uuid::new_v4().simple());
    let endpoint = endpoint.add(subject::all_streams(name)).await.map_err(failed)?;
    let listed = Listed(Some(service));
    let streams = Streams::accepting(client);
    Ok(async move {
        let _listed = listed;
        let messages = endpoint.map(|request| request.message);
        streams
            .accept(messages, |subject, stream| {
                let scope = subject::scope(subject);
                // A server that accepts nothing more refuses it by the end of the stream.
                scope.is_some_and(|scope| carrier.try_send(Carried { stream, scope }).is_ok())
            })
            .await;
    })
}

/// By the tools of the broker, for as long as it listens.
struct Listed(Option<Service>);

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(service) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // It has a task that would go on.
            runtime.spawn(service.stop());
        }
    }
}

/// Answers gateways that look for a place.
async fn bid(client: Client, own: Arc<Own>) -> Result<impl Future<Output = ()>, JoinError> {
    let asked = client.subscribe(subject::bid(&own.settings.name)).await;
    let mut asked = asked.map_err(|error| JoinError::Subscribe { source: error.into() })?;
    Ok(async move {
        while let Some(message) = asked.next().await {
            let reply = message.reply.filter(is_inbox);
            let Some((reply, bid)) = reply.zip(own.bid()) else { continue };
            let bid = serde_json::to_vec(&bid).unwrap_or_default();
            // One that is not heard is no bid.
            _ = client.publish(reply, bid.into()).await;
        }
    })
}

impl Own {
    /// What it would take now; nothing while it is not in the fleet.
    fn bid(&self) -> Option<Bid> {
        let epoch = self.fence.epoch(Instant::now())?;
        Some(Bid {
            node: self.settings.name.clone(),
            epoch,
            labels: self.settings.labels.clone(),
            free_slots: self.free_slots(),
            load: load(),
            draining: self.draining.load(Relaxed),
        })
    }

    fn free_slots(&self) -> u32 {
        let running = self.engine.phases_within(None).running;
        self.settings.slots.saturating_sub(u32::try_from(running).unwrap_or(u32::MAX))
    }
}

/// Runnable threads for each thousand processors.
fn load() -> u32 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let runnable = text.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (runnable.unwrap_or(0.0) * 1000.0 / processors as f64) as u32
}

/// How long a lease counts from a beat: shorter than the entry lives, by more than clocks differ.
const LEASE: Duration = Duration::from_secs(7);
const BEAT: Duration = Duration::from_secs(2);
