//! The end of a connection, as far as it has to wait for the client.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// How long a client may take nothing at all before what it was to get is thrown away.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the connection sees of the way to its client.
#[derive(Debug)]
pub(super) struct Delivered {
    /// Bytes that the client has taken.
    pub(super) bytes: watch::Receiver<u64>,
    /// Its sender goes away when all was delivered, or nothing can be any more.
    pub(super) over: watch::Receiver<()>,
}

/// What a transport keeps: it tells what was taken, and by going away that it is over.
#[derive(Debug)]
pub(super) struct Progress {
    bytes: watch::Sender<u64>,
    _over: watch::Sender<()>,
}

impl Progress {
    pub(super) fn new() -> (Self, Delivered) {
        let (bytes, taken) = watch::channel(0);
        let (sender, over) = watch::channel(());
        (Self { bytes, _over: sender }, Delivered { bytes: taken, over })
    }

    pub(super) fn taken(&self, count: usize) {
        self.bytes.send_modify(|sum| *sum += count as u64);
    }
}

impl Delivered {
    /// Waits until nothing more can be delivered. Cancel-safe.
    pub(super) async fn over(&mut self) {
        while self.over.changed().await.is_ok() {}
    }
}

/// Waits for this work, which ends when the client has taken everything; gives up on a client that
/// takes nothing.
pub(super) async fn while_the_client_takes(
    mut bytes: watch::Receiver<u64>,
    work: impl Future<Output = ()>,
) {
    let mut work = pin!(work);
    while let Ok(Ok(())) = {
        tokio::select! {
            () = &mut work => return,
            taken = timeout(PATIENCE, bytes.changed()) => taken,
        }
    } {}
    // Either it was the last byte, and the work is about to see that, or the client is stuck.
    _ = timeout(Duration::from_secs(1), work).await;
}
