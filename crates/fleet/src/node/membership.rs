//! Being in the fleet: the entry of a node in the presence bucket, written again with each beat.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::kv::{self, Operation, Store};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::{BEAT, Own, load};
use crate::connect::{JoinError, PRESENCE_TTL, bucket};
use crate::ids::Epoch;
use crate::presence::Entry;

pub(crate) const PRESENCE: &str = "lb_presence";
pub(crate) const NODES: &str = "lb_nodes";

#[derive(Debug)]
pub(super) struct Membership {
    client: Client,
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

/// Between attempts to join, and between beats.
fn beats() -> Interval {
    let mut beats = interval(BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats
}

/// The entry with the name of a node.
#[derive(Debug, Clone, Copy)]
enum Last {
    None,
    Own(u64),
    /// Of another server, which was heard of in the last ten seconds.
    Another,
}

fn tell_name_is_taken(own: &Own) {
    tracing::error!(
        "another server is the node {} of this fleet: stop it, or give one of them another name with \
         --node; trying again",
        own.settings.name
    );
}

/// Why it has not joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotJoined {
    NameTaken,
    Broker,
}

/// Our last write, and the epoch that began with the first one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stay {
    epoch: Epoch,
    revision: u64,
}

impl Membership {
    pub(super) async fn open(client: &Client) -> Result<Self, JoinError> {
        let (presence, nodes) = (open(client, PRESENCE).await?, open(client, NODES).await?);
        Ok(Self { client: client.clone(), presence, nodes })
    }

    /// Waits while another server has the name.
    pub(super) async fn until_name_is_free(&mut self, own: &Own) {
        let mut beats = beats();
        loop {
            beats.tick().await;
            match self.last_entry(own).await {
                Ok(Last::Another) => tell_name_is_taken(own),
                Ok(Last::None | Last::Own(_)) => return,
                Err(error) => self.could_not_join(own, &error).await,
            }
        }
    }

    /// Says again and again that it is there, and joins again after it could not. It ends when another
    /// server has the name.
    pub(super) async fn stay(mut self, own: &Own, stay: Stay) {
        let mut beats = beats();
        let mut stay = Some(stay);
        loop {
            beats.tick().await;
            let sent = Instant::now();
            stay = match stay.filter(|_| own.fence.epoch(sent).is_some()) {
                None => match self.join(own).await {
                    Ok(stay) => Some(stay),
                    Err(NotJoined::NameTaken) => return,
                    Err(NotJoined::Broker) => None,
                },
                Some(stay) => self.beat(own, stay, sent).await,
            };
        }
    }

    pub(super) async fn join(&mut self, own: &Own) -> Result<Stay, NotJoined> {
        let (name, sent) = (&own.settings.name, Instant::now());
        match self.write_first(own).await {
            Ok(Some(revision)) => {
                let epoch = Epoch(revision);
                own.fence.joined(epoch, sent);
                tracing::info!(node = name, epoch = epoch.0, "joined the fleet");
                Ok(Stay { epoch, revision })
            }
            Ok(None) => {
                tell_name_is_taken(own);
                Err(NotJoined::NameTaken)
            }
            Err(error) => {
                self.could_not_join(own, &error).await;
                Err(NotJoined::Broker)
            }
        }
    }

    async fn could_not_join(&mut self, own: &Own, error: &async_nats::Error) {
        tracing::warn!(node = own.settings.name, %error, "cannot join the fleet; trying again");
        // A broker that has lost its buckets needs them again.
        if let Ok(opened) = Self::open(&self.client).await {
            *self = opened;
        }
    }

    async fn last_entry(&self, own: &Own) -> Result<Last, async_nats::Error> {
        let last = self.presence.entry(&own.settings.name).await?;
        let Some(last) = last.filter(|last| last.operation == Operation::Put) else {
            return Ok(Last::None);
        };
        let entry = serde_json::from_slice::<Entry>(&last.value);
        let is_another = entry.is_ok_and(|entry| entry.server != own.server);
        Ok(if is_another { Last::Another } else { Last::Own(last.revision) })
    }

    /// On the revision of the last entry, if it is still there; `None` if it is another server's.
    async fn write_first(&self, own: &Own) -> Result<Option<u64>, async_nats::Error> {
        let (name, entry) = (&own.settings.name, own.entry(None));
        let last = self.last_entry(own).await?;
        if matches!(last, Last::Another) {
            return Ok(None);
        }
        // Gateways name it from now on, also when it is gone.
        self.nodes.put(name, "{}".into()).await?;
        let written = match last {
            Last::Own(revision) => self.presence.update(name, entry.into(), revision).await?,
            Last::None | Last::Another => self.presence.create(name, entry.into()).await?,
        };
        Ok(Some(written))
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
            server: self.server.clone(),
            epoch,
            labels: self.settings.labels.clone(),
            free_slots: self.free_slots(),
            load: load(),
            draining: self.draining.load(Relaxed),
        };
        serde_json::to_vec(&entry).unwrap_or_default()
    }
}
