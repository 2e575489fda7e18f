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
    pub(crate) sent: u64,
}

impl Outgoing {
    /// Sends until there will be no more of either; waits while the command does not read.
    pub(crate) async fn send(
        &mut self,
        mut to: AttachedWriter,
    ) -> Result<AttachedWriter, ClientError> {
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
                    Some(Input::End) => to.request(AttachRequest::CloseStdin).await?,
                    None => more_input = false,
                },
                else => return Ok(to),
            }
        }
    }
}
