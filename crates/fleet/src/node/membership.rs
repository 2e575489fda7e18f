//! Being in the fleet: the entry of a node in the presence bucket, written again with each beat.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::kv::{self, Operation, Store};
use tokio::time::{MissedTickBehavior, interval};

use super::{BEAT, Own, load};
use crate::connect::{JoinError, PRESENCE_TTL, bucket};
use crate::ids::Epoch;
use crate::presence::Entry;

pub(crate) const PRESENCE: &str = "lb_presence";
pub(crate) const NODES: &str = "lb_nodes";

#[derive(Debug)]
pub(super) struct Membership {
    presence: Store,
    nodes: Store,
}

/// Opens a bucket of the fleet by its name.
pub(crate) async fn open(client: &Client, name: &'static str) -> Result<Store, JoinError> {
    let mut config = kv::Config { bucket: name.into(), history: 1, ..kv::Config::default() };
    if name == PRESENCE {
        config.max_age = PRESENCE_TTL;
        // So that watchers hear of an entry that expires.
        config.limit_markers = Some(Duration::from_secs(60));
    }
    let opened = bucket(client, config).await;
    opened.map_err(|source| JoinError::Bucket { bucket: name, source })
}

/// Our last write, and the epoch that began with the first one.
#[derive(Debug, Clone, Copy)]
struct Stay {
    epoch: Epoch,
    revision: u64,
}

impl Membership {
    pub(super) async fn open(client: &Client) -> Result<Self, JoinError> {
        Ok(Self { presence: open(client, PRESENCE).await?, nodes: open(client, NODES).await? })
    }

    /// Joins, says so again and again, and joins again after it could not.
    pub(super) async fn stay(self, own: Arc<Own>) {
        let mut beats = interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stay = None;
        loop {
            beats.tick().await;
            let sent = Instant::now();
            stay = match stay.filter(|_| own.fence.epoch(sent).is_some()) {
                None => self.join(&own, sent).await,
                Some(stay) => self.beat(&own, stay, sent).await,
            };
        }
    }

    async fn join(&self, own: &Own, sent: Instant) -> Option<Stay> {
        let name = &own.settings.name;
        // Gateways name it from now on, also when it is gone.
        let known = self.nodes.put(name, "{}".into()).await;
        let joined = match known {
            Ok(_) => self.write_first(own).await,
            Err(error) => Err(error.into()),
        };
        match joined {
            Ok(revision) => {
                let epoch = Epoch(revision);
                own.fence.joined(epoch, sent);
                tracing::info!(node = name, epoch = epoch.0, "joined the fleet");
                Some(Stay { epoch, revision })
            }
            Err(error) => {
                tracing::warn!(node = name, %error, "cannot join the fleet; trying again");
                None
            }
        }
    }

    /// On the revision of the last entry, if it is still there.
    async fn write_first(&self, own: &Own) -> Result<u64, async_nats::Error> {
        let (name, entry) = (&own.settings.name, own.entry(None));
        match self.presence.entry(name).await? {
            Some(last) if last.operation == Operation::Put => {
                Ok(self.presence.update(name, entry.into(), last.revision).await?)
            }
            Some(_) | None => Ok(self.presence.create(name, entry.into()).await?),
        }
    }

    async fn beat(&self, own: &Own, stay: Stay, sent: Instant) -> Option<Stay> {
        let entry = own.entry(Some(stay.epoch));
        match self.presence.update(&own.settings.name, entry.into(), stay.revision).await {
            Ok(revision) => {
                own.fence.renewed(sent, Instant::now());
                Some(Stay { revision, ..stay })
            }
            Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => {
                // Our own last write may have arrived without its acknowledgement.
                let found = self.presence.entry(&own.settings.name).await.ok().flatten()?;
                let entry: Option<Entry> = serde_json::from_slice(&found.value).ok();
                let is_ours = entry.is_some_and(|entry| entry.epoch == Some(stay.epoch));
                is_ours.then_some(Stay { revision: found.revision, ..stay })
            }
            Err(error) => {
                tracing::warn!(%error, "cannot tell the fleet that this node is here");
                Some(stay)
            }
        }
    }
}

impl Own {
    fn entry(&self, epoch: Option<Epoch>) -> Vec<u8> {
        let entry = Entry {
            node: self.settings.name.clone(),
            epoch,
            labels: self.settings.labels.clone(),
            free_slots: self.free_slots(),
            load: load(),
            draining: self.draining.load(Relaxed),
        };
        serde_json::to_vec(&entry).unwrap_or_default()
    }
}
