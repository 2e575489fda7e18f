//! Where claims are: in a bucket of the fleet, or for a key that this gateway made for itself and
//! nobody else knows, in the request alone.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::kv::{self, CreateErrorKind, Operation, Store, UpdateErrorKind};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::claim::{Claim, Event, Held};
use crate::connect::bucket;
use crate::ids::{Fingerprint, Revision};

const CLAIMS: &str = "lb_claims";
/// Has the secret of fingerprints, which readers of claims must not have.
const SECRET: &str = "lb_secret";
const SECRET_KEY: &str = "fingerprints";
/// How long the bucket has for one answer. A cluster that chooses another leader takes longer: then
/// it is asked again.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// The claims of keys that clients gave.
#[derive(Debug)]
pub(super) struct Claims {
    client: Client,
    opened: OnceCell<(Store, Vec<u8>)>,
}

/// The claim of one key.
#[derive(Debug)]
pub(super) enum ClaimOf {
    Bucket { store: Box<Store>, key: String },
    Own(Option<Held>),
}

impl Claims {
    pub(super) fn new(client: Client) -> Self {
        Self { client, opened: OnceCell::new() }
    }

    /// The claim of this key, and the fingerprint of the launch.
    pub(super) async fn of(
        &self,
        key: &str,
        launch: &Value,
    ) -> Result<(ClaimOf, Fingerprint), async_nats::Error> {
        let (store, secret) = self.opened.get_or_try_init(|| self.open()).await?;
        let claim =
            ClaimOf::Bucket { store: Box::new(store.clone()), key: hex(&Sha256::digest(key)) };
        Ok((claim, fingerprint(secret, launch)))
    }

    async fn open(&self) -> Result<(Store, Vec<u8>), async_nats::Error> {
        let config =
            |bucket: &str| kv::Config { bucket: bucket.into(), history: 1, ..Default::default() };
        let claims = bucket(&self.client, config(CLAIMS)).await?;
        let secrets = bucket(&self.client, config(SECRET)).await?;
        let fresh = [uuid::Uuid::new_v4().into_bytes(), uuid::Uuid::new_v4().into_bytes()].concat();
        // The first gateway makes it; later ones read it.
        _ = secrets.create(SECRET_KEY, fresh.into()).await;
        let secret = secrets.get(SECRET_KEY).await?.ok_or("the secret of the fleet is missing")?;
        Ok((claims, secret.into()))
    }
}

/// Without what says how to answer, and where.
pub(super) fn fingerprint(secret: &[u8], launch: &Value) -> Fingerprint {
    let mut launch = launch.clone();
    if let Some(members) = launch.as_object_mut() {
        for member in ["wait", "view", "max_bytes", "on", "replace"] {
            members.remove(member);
        }
    }
    // Members of a JSON value are sorted.
    Fingerprint(hex(&Sha256::new()
        .chain_update(secret)
        .chain_update(launch.to_string())
        .finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl ClaimOf {
    pub(super) async fn create<B>(&mut self, claim: &Claim) -> Event<B> {
        match self {
            Self::Own(held) => own(held, claim),
            Self::Bucket { store, key } => {
                match timeout(ANSWERED_WITHIN, store.create(&*key, json(claim))).await {
                    Ok(Ok(revision)) => Event::Written(Revision(revision)),
                    Ok(Err(error)) if error.kind() == CreateErrorKind::AlreadyExists => {
                        Event::Exists
                    }
                    Ok(Err(_)) | Err(_) => Event::Ambiguous,
                }
            }
        }
    }

    pub(super) async fn change<B>(&mut self, claim: &Claim, from: Revision) -> Event<B> {
        match self {
            Self::Own(held) => own(held, claim),
            Self::Bucket { store, key } => {
                let update = store.update(&*key, json(claim), from.0);
                match timeout(ANSWERED_WITHIN, update).await {
                    Ok(Ok(revision)) => Event::Written(Revision(revision)),
                    Ok(Err(error)) if error.kind() == UpdateErrorKind::WrongLastRevision => {
                        Event::Exists
                    }
                    Ok(Err(_)) | Err(_) => Event::Ambiguous,
                }
            }
        }
    }

    pub(super) async fn read<B>(&self) -> Event<B> {
        match self {
            Self::Own(held) => Event::Read(held.clone()),
            Self::Bucket { store, key } => match timeout(ANSWERED_WITHIN, store.entry(key)).await {
                Ok(Ok(None)) => Event::Read(None),
                Ok(Ok(Some(entry))) => match serde_json::from_slice(&entry.value) {
                    Ok(claim) if entry.operation == Operation::Put => {
                        Event::Read(Some(Held { claim, revision: Revision(entry.revision) }))
                    }
                    Ok(_) | Err(_) => Event::Read(None),
                },
                Ok(Err(_)) | Err(_) => Event::Ambiguous,
            },
        }
    }
}

/// Nobody else can have written it.
fn own<B>(held: &mut Option<Held>, claim: &Claim) -> Event<B> {
    *held = Some(Held { claim: claim.clone(), revision: Revision(0) });
    Event::Written(Revision(0))
}

fn json(claim: &Claim) -> bytes::Bytes {
    serde_json::to_vec(claim).unwrap_or_default().into()
}
