//! The connection to the broker, and the buckets of the fleet.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::kv::{self, Store};
use async_nats::{Auth, AuthError, Client, ConnectOptions, Event};
use lastbyte_wire::{Error, ErrorCode};

use crate::nkey::{self, Credentials};

/// Where the broker is, and how to log in.
#[derive(Debug, Clone, Default)]
pub struct Broker {
    /// Like `nats://127.0.0.1:4222`; several with commas between them; `tls://` needs TLS.
    pub url: String,
    /// A file with a JWT and a seed, as `nsc` writes it, or with a seed alone.
    pub credentials: Option<PathBuf>,
    /// Certificates of authorities to trust, instead of those of the system.
    pub authorities: Option<PathBuf>,
}

/// Why the fleet cannot be joined.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("cannot read the credentials in {path}", path = path.display())]
    Credentials { path: PathBuf, source: nkey::BadCredentials },
    #[error("cannot connect to the broker at {url}")]
    Connect { url: String, source: async_nats::ConnectError },
    #[error("cannot use the bucket {bucket} of the broker (is JetStream enabled?)")]
    Bucket { bucket: &'static str, source: async_nats::Error },
    #[error("cannot read the state directory {path}", path = path.display())]
    State { path: PathBuf, source: io::Error },
    #[error("cannot subscribe at the broker")]
    Subscribe { source: async_nats::Error },
}

/// Entries live so long after the last beat.
pub(crate) const PRESENCE_TTL: Duration = Duration::from_secs(10);
/// In the time of one request; only to end a hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

impl Broker {
    /// Whether the credentials can be read.
    pub(crate) fn check(&self) -> Result<(), JoinError> {
        self.credentials().map(drop)
    }

    fn credentials(&self) -> Result<Option<Credentials>, JoinError> {
        let read = |path: &PathBuf| {
            let failed = |source| JoinError::Credentials { path: path.clone(), source };
            Credentials::read(path).map_err(failed)
        };
        self.credentials.as_ref().map(read).transpose()
    }

    /// A client that connects again for ever. It fails only if the first connection does.
    pub(crate) async fn connect(&self, name: &str) -> Result<Client, JoinError> {
        let mut options = match self.credentials()? {
            None => ConnectOptions::new(),
            Some(credentials) => {
                let inboxes = credentials.inboxes();
                ConnectOptions::with_auth_callback(move |nonce| {
                    let auth = credentials.answer(&nonce);
                    async move { Ok::<Auth, AuthError>(auth) }
                })
                .custom_inbox_prefix(inboxes)
            }
        };
        if let Some(path) = &self.authorities {
            options = options.add_root_certificates(path.clone());
        }
        let urls: Vec<&str> = self.url.split(',').map(str::trim).collect();
        let connected = options
            .name(name)
            .connection_timeout(PATIENCE)
            .ping_interval(Duration::from_secs(5))
            .event_callback(|event| async move { tell(&event) })
            .connect(urls)
            .await;
        connected.map_err(|source| JoinError::Connect { url: self.url.clone(), source })
    }
}

fn tell(event: &Event) {
    match event {
        Event::Connected => tracing::info!("connected to the broker"),
        Event::Disconnected => tracing::warn!("the connection to the broker was lost"),
        Event::SlowConsumer(_) => tracing::warn!("the broker sends faster than is read"),
        event => tracing::warn!(%event, "the broker says"),
    }
}

/// The bucket with this configuration, created if there is none: with three copies in a cluster, which
/// must have three servers.
pub(crate) async fn bucket(
    client: &Client,
    config: kv::Config,
) -> Result<Store, async_nats::Error> {
    let jetstream = async_nats::jetstream::new(client.clone());
    if let Ok(store) = jetstream.get_key_value(&config.bucket).await {
        return Ok(store);
    }
    let num_replicas = if client.server_info().cluster.is_some() { 3 } else { 1 };
    let created = jetstream.create_key_value(kv::Config { num_replicas, ..config.clone() }).await;
    match created {
        Ok(store) => Ok(store),
        // Another one may have created it meanwhile.
        Err(error) => jetstream.get_key_value(&config.bucket).await.map_err(|_| error.into()),
    }
}

/// What a gateway answers while it has no connection.
pub(crate) fn check_connected(client: &Client) -> Result<(), Error> {
    if client.connection_state() == State::Connected {
        return Ok(());
    }
    let message = "this gateway has no connection to the broker of the fleet";
    Err(Error::new(ErrorCode::FleetUnreachable, message)
        .hint("it tries again; nodes go on, and their own sockets work"))
}
