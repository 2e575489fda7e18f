//! Who is in the fleet, as this gateway sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::kv::{Entry as KvEntry, Operation, Watch};
use futures_util::StreamExt;
use lastbyte_engine::IdTag;
use lastbyte_wire::{Error, ErrorCode, Node, NodeReport, NodeState};
use tokio::sync::watch;
use tokio::time::{interval, timeout};

use crate::connect::{JoinError, PATIENCE};
use crate::ids::{Epoch, Revision};
use crate::node::{NODES, PRESENCE, id_tag, open};
use crate::placement::Bid;
use crate::presence::{Entry, Lease, Presence, Standing};

/// A node that was not heard for so long is called silent: two beats.
const SILENT_AFTER: Duration = Duration::from_secs(5);
const BEFORE_NEXT_WATCH: Duration = Duration::from_millis(500);
/// How often a watch that hears nothing asks whether it is still that of this connection.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Nodes {
    presence: Mutex<Presence>,
    /// Everybody who has ever joined.
    known: Mutex<BTreeSet<String>>,
    /// A bit for each of the two buckets that has been listed.
    listed: watch::Sender<u32>,
}

impl Nodes {
    /// Watches until it is dropped by all but its own tasks; known once both buckets were read.
    pub(super) async fn watch(client: &Client) -> Result<Arc<Self>, JoinError> {
        // They are there from now on, or nothing works.
        _ = (open(client, PRESENCE).await?, open(client, NODES).await?);
        let own = Arc::new(Self {
            presence: Mutex::new(Presence::new(SILENT_AFTER)),
            known: Mutex::default(),
            listed: watch::Sender::new(0),
        });
        tokio::spawn(Arc::clone(&own).watch_presence(client.clone()));
        tokio::spawn(Arc::clone(&own).watch_known(client.clone()));
        let mut listed = own.listed.subscribe();
        // Without it, the gateway learns of the nodes a little later.
        _ = timeout(PATIENCE, listed.wait_for(|buckets| *buckets == 3)).await;
        Ok(own)
    }

    async fn watch_presence(self: Arc<Self>, client: Client) {
        let mut pauses = interval(BEFORE_NEXT_WATCH);
        let mut last_made = None;
        loop {
            pauses.tick().await;
            let Ok(mut watched) = Watched::begin(&client, PRESENCE).await else { continue };
            {
                let mut presence = self.presence();
                // Revisions of another bucket say nothing about those of this one.
                if last_made.replace(watched.made).is_some_and(|made| made != watched.made) {
                    *presence = Presence::new(SILENT_AFTER);
                }
                presence.list_again();
            }
            if watched.is_empty {
                self.presence_listed();
            }
            while let Some(entry) = watched.next(&client).await {
                let is_last = entry.delta == 0;
                self.take(entry);
                if is_last {
                    self.presence_listed();
                }
            }
        }
    }

    fn presence_listed(&self) {
        self.presence().listed(Instant::now());
        self.listed.send_modify(|buckets| *buckets |= 1);
    }

    fn take(&self, entry: KvEntry) {
        let (now, revision) = (Instant::now(), Revision(entry.revision));
        match (entry.operation, serde_json::from_slice::<Entry>(&entry.value)) {
            (Operation::Put, Ok(known)) => self.presence().put(known, revision, now),
            (Operation::Put, Err(_)) => tracing::warn!(key = entry.key, "foreign entry of a node"),
            (Operation::Delete | Operation::Purge, _) => {
                self.presence().removed(&entry.key, revision, now);
            }
        }
    }

    async fn watch_known(self: Arc<Self>, client: Client) {
        let mut pauses = interval(BEFORE_NEXT_WATCH);
        loop {
            pauses.tick().await;
            let Ok(mut watched) = Watched::begin(&client, NODES).await else { continue };
            if watched.is_empty {
                self.listed.send_modify(|buckets| *buckets |= 2);
            }
            while let Some(entry) = watched.next(&client).await {
                let is_last = entry.delta == 0;
                match entry.operation {
                    Operation::Put => _ = self.known().insert(entry.key),
                    Operation::Delete | Operation::Purge => {
                        self.known().remove(&entry.key);
                        self.presence().forget(&entry.key);
                    }
                }
                if is_last {
                    self.listed.send_modify(|buckets| *buckets |= 2);
                }
            }
        }
    }

    fn presence(&self) -> MutexGuard<'_, Presence> {
        self.presence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every node there ever was, by name.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names = self.known().clone();
        names.extend(self.presence().all(Instant::now()).map(|(bid, _)| bid.node.clone()));
        names.into_iter().collect()
    }

    /// Without the nodes, an empty list would look like that of a fleet which has none.
    pub(super) fn check_listed(&self) -> Result<(), Error> {
        if *self.listed.borrow() == 3 {
            return Ok(());
        }
        let message = "this gateway could not read yet which nodes the fleet has";
        Err(Error::new(ErrorCode::FleetUnreachable, message)
            .hint("it tries again; its log says what the broker refuses"))
    }

    pub(super) fn check_known(&self, node: &str) -> Result<(), Error> {
        if self.names().iter().any(|name| name == node) {
            return Ok(());
        }
        Err(Error::new(ErrorCode::NodeNotFound, format!("the fleet has no node {node}"))
            .hint("list them with GET /v1/nodes"))
    }

    /// For all gateways, until it joins again.
    pub(super) async fn forget(&self, client: &Client, node: &str) -> Result<(), Error> {
        let now = Instant::now();
        if !matches!(self.presence().standing(node, now), Standing::Gone { .. } | Standing::Unknown)
        {
            let message = format!("the node {node} is not gone");
            return Err(Error::new(ErrorCode::InvalidRequest, message)
                .hint("stop its server first; it is gone ten seconds later"));
        }
        let purged = async { open(client, NODES).await.ok()?.purge(node).await.ok() };
        if purged.await.is_none() {
            let message = format!("cannot remove the node {node} from the broker's list");
            return Err(Error::new(ErrorCode::FleetUnreachable, message).hint("try again"));
        }
        self.known().remove(node);
        self.presence().forget(node);
        Ok(())
    }

    /// The nodes whose ids have this tag: one, unless the hashes of two names are the same.
    pub(super) fn with_tag(&self, tag: IdTag) -> Vec<String> {
        self.names().into_iter().filter(|name| id_tag(name) == tag).collect()
    }

    pub(super) fn present(&self) -> Vec<Bid> {
        self.presence().present(Instant::now()).cloned().collect()
    }

    pub(super) fn lease(&self, node: &str, epoch: Epoch) -> Lease {
        self.presence().lease(node, epoch)
    }

    /// As the API tells it.
    pub(super) fn all(&self) -> Vec<Node> {
        let last: BTreeMap<String, (Bid, Standing)> = {
            let presence = self.presence();
            let all = presence.all(Instant::now());
            all.map(|(bid, standing)| (bid.node.clone(), (bid.clone(), standing))).collect()
        };
        let node = |name: String| {
            let known = last.get(&name);
            let state = known.map_or(NodeState::Gone, |(bid, standing)| state(bid, *standing));
            Node { state, last: known.map(|(bid, _)| report(bid)), name }
        };
        self.names().into_iter().map(node).collect()
    }
}

/// A bucket, from all that it has to all that is written later.
struct Watched {
    entries: Watch,
    /// Then it tells nothing of its own accord.
    is_empty: bool,
    /// When the bucket was created: one that was lost is another one afterwards.
    made: i128,
    connects: u64,
}

impl Watched {
    async fn begin(client: &Client, name: &'static str) -> Result<Self, async_nats::Error> {
        let connects = client.statistics().connects.load(Relaxed);
        let store = open(client, name).await?;
        let status = store.status().await?;
        let entries = store.watch_with_history(">").await?;
        let (is_empty, made) = (status.values() == 0, status.info.created.unix_timestamp_nanos());
        Ok(Self { entries, is_empty, made, connects })
    }

    /// `None` when everything must be read again: the watch broke, or the connection did, and its
    /// consumer may have gone, or markers that came meanwhile.
    async fn next(&mut self, client: &Client) -> Option<KvEntry> {
        while client.statistics().connects.load(Relaxed) == self.connects {
            match timeout(LOOK, self.entries.next()).await {
                Ok(Some(Ok(entry))) => return Some(entry),
                Ok(Some(Err(_)) | None) => return None,
                Err(_) => {}
            }
        }
        None
    }
}

fn state(bid: &Bid, standing: Standing) -> NodeState {
    match standing {
        Standing::Present { .. } if bid.draining => NodeState::Draining,
        Standing::Present { .. } => NodeState::Present,
        Standing::Silent { .. } => NodeState::Silent,
        Standing::Gone { .. } | Standing::Unknown => NodeState::Gone,
    }
}

fn report(bid: &Bid) -> NodeReport {
    let Bid { epoch: Epoch(epoch), labels, free_slots, load, .. } = bid;
    NodeReport { epoch: *epoch, labels: labels.clone(), free_slots: *free_slots, load: *load }
}
