//! Attaching again when a connection has broken, where that is safe.

use std::time::Duration;

use lastbyte_client::wire::AttachQuery;
use lastbyte_client::{Attached, Client, ClientError};
use tokio::time::Instant;

use crate::process_id;
use crate::server_args::nobody_listens;

/// There is no connection, and another is not to be had or would not be true.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LostError {
    #[error("the server has gone; what became of the process is not known")]
    ServerGone,
    #[error("the connection broke and cannot be made again")]
    Broke(#[source] ClientError),
    #[error(
        "the connection broke, and what was typed last may not have arrived; \
         `lastbyte attach {} --from {cursor}` goes on", process_id::short(.id)
    )]
    InputUnknown { id: String, cursor: u64 },
    #[error("every connection breaks at once; `lastbyte attach {}` tries again", process_id::short(.id))]
    Closed { id: String },
}

/// Makes connections to one process, one when the last has broken.
#[derive(Debug)]
pub(crate) struct Again<'a> {
    client: &'a Client,
    id: &'a str,
    /// When the last one was made, and how many before it did not last.
    made: Instant,
    short_lived: u32,
}

/// Connections that break so soon, and so many of them one after the other, are nobody's accident.
const SHORT_LIVED: Duration = Duration::from_secs(5);
const MOST_SHORT_LIVED: u32 = 5;

impl<'a> Again<'a> {
    /// One is there.
    pub(crate) fn new(client: &'a Client, id: &'a str) -> Self {
        Self { client, id, made: Instant::now(), short_lived: 0 }
    }

    /// Goes on at the cursor if so much input was accepted as is expected, that is if everything
    /// that was sent has arrived: nothing is sent twice, and nothing is guessed. When others have
    /// written meanwhile the count is another, and says nothing.
    pub(crate) async fn attach(
        &mut self,
        cursor: u64,
        expected: Option<u64>,
    ) -> anyhow::Result<Attached> {
        let lasted = self.made.elapsed() >= SHORT_LIVED;
        self.short_lived = if lasted { 0 } else { self.short_lived + 1 };
        if self.short_lived > MOST_SHORT_LIVED {
            return Err(LostError::Closed { id: self.id.into() }.into());
        }
        let from = Some(i64::try_from(cursor)?);
        let attached = self.connect(&AttachQuery { from, ..AttachQuery::default() }).await?;
        self.made = Instant::now();
        match attached.accepted() {
            Some(accepted) if Some(accepted) != expected => {
                Err(LostError::InputUnknown { id: self.id.into(), cursor }.into())
            }
            // All of it, or the process takes no more and its end says why.
            Some(_) | None => Ok(attached),
        }
    }

    async fn connect(&self, query: &AttachQuery) -> anyhow::Result<Attached> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.client.attach(self.id, query).await {
                Ok(attached) => return Ok(attached),
                Err(error) if nobody_listens(&error) => return Err(LostError::ServerGone.into()),
                Err(refused @ ClientError::Refused(_)) => return Err(refused.into()),
                // A server that is just dying lets a client in and resets it.
                Err(_) if tries < MOST_SHORT_LIVED => {}
                Err(error) => return Err(LostError::Broke(error).into()),
            }
        }
    }
}
