//! Sending a message to the server, which may be started, killed or replaced meanwhile.

use std::cell::Cell;
use std::env;
use std::io;
use std::rc::Rc;

use anyhow::Context;
use bytes::Bytes;
use lastbyte_client::{Address, Client, ClientError, McpMessage, McpRepeat};
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, mpsc};
use uuid::Uuid;

use super::message::Incoming;
use crate::autostart;
use crate::client_error;
use crate::daemon::instance::ShuttingDown;
use crate::server_args::{ServerArgs, is_not_running};

/// What all messages of one shim have in common.
pub(super) struct Exchange {
    server: ServerArgs,
    session: String,
    /// Makes the calls of this shim different from those of all others.
    nonce: Uuid,
    calls: Cell<u64>,
    /// Where and with which variables commands are started.
    launch: Value,
    /// Locked while the server is looked for or started, which must not be done twice at a time.
    client: Mutex<Option<Rc<Client>>>,
}

/// How often a server that has gone for good is started again for one message.
const STARTS: usize = 3;

impl Exchange {
    pub(super) fn new(server: ServerArgs, session: String) -> anyhow::Result<Self> {
        let cwd = env::current_dir().context("cannot find the current directory")?;
        let env: Map<String, Value> = env::vars_os()
            .filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.into_string().ok()?.into()))
            })
            .collect();
        let launch = json!({ "cwd": cwd.to_str(), "env": env });
        let (nonce, calls, client) = (Uuid::new_v4(), Cell::new(0), Mutex::new(None));
        Ok(Self { server, session, nonce, calls, launch, client })
    }

    /// Sends a message, and passes on what the server answers.
    pub(super) async fn answer(&self, incoming: Incoming, output: &mpsc::Sender<Vec<u8>>) {
        let nth = self.calls.replace(self.calls.get() + 1);
        // By its number here, not by the client's id, which a client may use again.
        let call = format!("{}-{nth}", self.nonce);
        let repeat = incoming.repeat();
        let body = Bytes::from(incoming.clone().into_body(&self.launch));
        let message = McpMessage::new(body, &self.session, &call, repeat);
        if let Err(error) = self.send(&message, output).await
            && let Some(refusal) = incoming.refusal(&in_words(&error, repeat))
        {
            // A writer that is gone ends the whole shim.
            _ = output.send(refusal).await;
        }
    }

    async fn send(
        &self,
        message: &McpMessage,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> anyhow::Result<()> {
        let mut starts = 0;
        loop {
            let client = self.client().await?;
            let sent = client.mcp(message, async |answer: Bytes| {
                // A writer that is gone ends the whole shim.
                _ = output.send(one_line(&answer)).await;
            });
            match sent.await {
                Err(error) if is_not_running(&error) && starts < STARTS => {
                    starts += 1;
                    self.forget(&client).await;
                }
                sent => return Ok(sent?),
            }
        }
    }

    /// The client of a server that was there a moment ago.
    async fn client(&self) -> anyhow::Result<Rc<Client>> {
        let mut client = self.client.lock().await;
        if let Some(client) = &*client {
            return Ok(Rc::clone(client));
        }
        let found = Rc::new(self.find().await?);
        *client = Some(Rc::clone(&found));
        Ok(found)
    }

    /// Finds a server, or starts one where it is ours to start.
    async fn find(&self) -> anyhow::Result<Client> {
        let found = match self.server.client().await {
            Ok(client) => match client.health().await {
                Ok(_) => Ok(client),
                Err(error) => Err(error.into()),
            },
            Err(error) => Err(error),
        };
        match (found, self.server.place()?) {
            (Err(error), Some(place)) if needs_server(&error) => {
                autostart::ensure_server(&place, &self.server).await
            }
            (found, _) => found,
        }
    }

    /// Makes the next message look for the server again, unless another has done so.
    async fn forget(&self, gone: &Rc<Client>) {
        let mut client = self.client.lock().await;
        if client.as_ref().is_some_and(|known| Rc::ptr_eq(known, gone)) {
            *client = None;
        }
    }
}

fn needs_server(error: &anyhow::Error) -> bool {
    error.is::<ShuttingDown>() || error.downcast_ref().is_some_and(is_not_running)
}

fn in_words(error: &anyhow::Error, repeat: McpRepeat) -> String {
    let broke = error.downcast_ref().is_some_and(client_error::is_gone);
    match repeat {
        McpRepeat::Never if broke && !error.downcast_ref().is_some_and(is_not_running) => {
            "the connection to the server broke: the input may or may not have been written\nnext: \
             look at the output with read_output before writing it again"
                .into()
        }
        McpRepeat::Never | McpRepeat::Safe => with_sandbox_advice(error),
    }
}

/// An agent may run this in a sandbox of its own, which refuses sockets.
fn with_sandbox_advice(error: &anyhow::Error) -> String {
    let text = client_error::to_text(error);
    match error.downcast_ref() {
        Some(ClientError::Connect { address: Address::Unix(socket), source })
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            let socket = socket.display();
            format!(
                "{text}\nnext: if the agent runs this in a sandbox, ask its user to allow the unix socket \
                 {socket} (in Claude Code: sandbox.network.allowUnixSockets in its settings); what \
                 lastbyte runs is not in that sandbox"
            )
        }
        _ => text,
    }
}

/// JSON has no newlines but between its tokens.
fn one_line(message: &[u8]) -> Vec<u8> {
    message.iter().filter(|byte| !b"\r\n".contains(byte)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_a_sandbox_refuses_is_named_with_the_setting_that_allows_it() {
        for (kind, advises) in
            [(io::ErrorKind::PermissionDenied, true), (io::ErrorKind::ConnectionRefused, false)]
        {
            let address = Address::Unix("/run/x/socket".into());
            let error = ClientError::Connect { address, source: kind.into() };
            let text = in_words(&error.into(), McpRepeat::Safe);
            assert_eq!(text.contains("allow the unix socket /run/x/socket ("), advises, "{text}");
        }
    }
}
