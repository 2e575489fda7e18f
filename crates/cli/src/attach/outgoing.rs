//! What goes to the server: input, and the size of our window.

use lastbyte_client::wire::AttachRequest;
use lastbyte_client::{AttachedWriter, ClientError};
use lastbyte_engine::WindowSize;
use tokio::sync::{mpsc, watch};

use super::input::StdinPiece;

#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(super) input: mpsc::Receiver<StdinPiece>,
    /// `None` when the process is not to be told.
    pub(super) sizes: Option<watch::Receiver<WindowSize>>,
    /// How much input the process has if all that was sent has arrived; `None` if it takes none.
    pub(super) expected: Option<u64>,
    /// The end of the input went over a connection, and may not have arrived.
    pub(super) end_sent: bool,
}

impl Outgoing {
    /// A new connection, with the input accepted before it; `None` if the process takes no input,
    /// and then its end has arrived.
    pub(crate) fn begin(&mut self, accepted: Option<u64>) {
        self.expected = accepted;
        self.end_sent &= accepted.is_some();
    }

    /// Sends until there will be no more of either; waits while the command does not read.
    pub(crate) async fn send(
        &mut self,
        mut to: AttachedWriter,
    ) -> Result<AttachedWriter, ClientError> {
        if self.end_sent {
            // It was sent by a connection that broke; the input is still open, so it did not
            // arrive.
            to.request(AttachRequest::CloseStdin).await?;
        }
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
                Some(input) = self.input.recv() => match input {
                    StdinPiece::Bytes(bytes) => {
                        self.expected = self.expected.map(|before| before + bytes.len() as u64);
                        to.write(bytes).await?;
                    }
                    StdinPiece::End => {
                        self.end_sent = true;
                        to.request(AttachRequest::CloseStdin).await?;
                    }
                },
                else => return Ok(to),
            }
        }
    }
}
