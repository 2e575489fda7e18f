//! Reconnects when a connection broke, if that is safe.

use std::time::Duration;

use anyhow::{Context, bail};
use lastbyte_client::wire::AttachQuery;
use lastbyte_client::{Attached, Client, ClientError};
use tokio::time::Instant;

use crate::client_error::ServerGone;
use crate::process_args::short_id;
use crate::server_args::is_not_running;

/// Makes connections to one process, one when the last has broken.
#[derive(Debug)]
pub(crate) struct Reconnect<'a> {
    client: &'a Client,
    id: &'a str,
    /// When the last one was made, and how many before it did not last.
    made: Instant,
    short_lived: u32,
}

/// After this many connections in a row that broke this soon, stop reconnecting.
const SHORT_LIVED: Duration = Duration::from_secs(5);
const MAX_SHORT_LIVED: u32 = 5;

impl<'a> Reconnect<'a> {
    /// One is there.
    pub(crate) fn new(client: &'a Client, id: &'a str) -> Self {
        Self { client, id, made: Instant::now(), short_lived: 0 }
    }

    /// Continues at the cursor if the accepted input is what is expected, that is if everything
    /// that was sent has arrived: nothing is sent twice, and nothing is guessed. If others have
    /// written meanwhile, the count differs and proves nothing.
    pub(crate) async fn attach(
        &mut self,
        cursor: u64,
        expected: Option<u64>,
    ) -> anyhow::Result<Attached> {
        let id = short_id(self.id);
        let lasted = self.made.elapsed() >= SHORT_LIVED;
        self.short_lived = if lasted { 0 } else { self.short_lived + 1 };
        if self.short_lived > MAX_SHORT_LIVED {
            bail!("the connection keeps breaking; try again with `lastbyte attach {id}`");
        }
        let from = Some(i64::try_from(cursor)?);
        let query = AttachQuery { from, ..AttachQuery::default() };
        let attached = match self.client.attach(self.id, &query).await {
            Ok(attached) => attached,
            Err(error) if is_not_running(&error) => return Err(ServerGone.into()),
            Err(refused @ ClientError::Refused(_)) => return Err(refused.into()),
            Err(error) => {
                return Err(error).context("the connection broke, and reconnecting failed");
            }
        };
        self.made = Instant::now();
        // If the process takes no more, its end says why.
        if attached.accepted.is_some_and(|accepted| Some(accepted) != expected) {
            bail!(
                "the connection broke, and your last input may not have arrived; \
                 continue with `lastbyte attach {id} --from {cursor}`"
            );
        }
        Ok(attached)
    }
}
