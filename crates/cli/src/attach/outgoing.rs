//! What goes to the server: input, and the size of our window.

use lastbyte_client::wire::AttachRequest;
use lastbyte_client::{AttachedWriter, ClientError};
use lastbyte_engine::WindowSize;
use tokio::sync::{mpsc, watch};

use super::input::Input;

#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) input: mpsc::Receiver<Input>,
    /// `None` when the process is not to be told.
    pub(crate) sizes: Option<watch::Receiver<WindowSize>>,
    /// How many bytes of input went over the connection that is there now.
    sent: u64,
    /// The end of the input went over one, and may not have arrived.
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// There is none yet, or it has arrived.
    Settled,
    Sent,
}

impl Outgoing {
    pub(crate) fn new(
        input: mpsc::Receiver<Input>,
        sizes: Option<watch::Receiver<WindowSize>>,
    ) -> Self {
        Self { input, sizes, sent: 0, end: End::Settled }
    }

    /// A connection is there, before which so much input was accepted; `None` when none is taken,
    /// and then its end was heard.
    pub(crate) fn begin(&mut self, accepted: Option<u64>) {
        self.sent = 0;
        if accepted.is_none() {
            self.end = End::Settled;
        }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Sends until there will be no more of either; waits while the command does not read.
    pub(crate) async fn send(
        &mut self,
        mut to: AttachedWriter,
    ) -> Result<AttachedWriter, ClientError> {
        if self.end == End::Sent {
            // By a connection that broke. An input that is open has not come to its end.
            to.request(AttachRequest::CloseStdin).await?;
        }
        let mut more_input = true;
        loop {
            let size = async {
                match &mut self.sizes {
                    Some(sizes) => sizes.changed().await.ok().map(|()| *sizes.borrow_and_update()),
                    None => None,
                }
            };
            tokio::select! {
                Some(WindowSize { rows, cols }) = size => {
                    to.request(AttachRequest::Resize { rows, cols }).await?;
                }
                input = self.input.recv(), if more_input => match input {
                    Some(Input::Bytes(bytes)) => {
                        self.sent += bytes.len() as u64;
                        to.write(bytes).await?;
                    }
                    Some(Input::End) => {
                        self.end = End::Sent;
                        to.request(AttachRequest::CloseStdin).await?;
                    }
                    None => more_input = false,
                },
                else => return Ok(to),
            }
        }
    }
}
