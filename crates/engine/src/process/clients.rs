//! Who is connected to a process that is stopped when its clients are gone.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::launch::OnDisconnect;
use crate::process::Process;
use crate::stop::Verb;

/// How many clients are connected.
#[derive(Debug)]
pub(crate) struct Clients {
    count: Arc<watch::Sender<usize>>,
    after: Duration,
}

/// A client of a process, which is connected for as long as this lives.
#[derive(Debug)]
pub struct Connected(Arc<watch::Sender<usize>>);

impl Clients {
    /// `None` for a process that is kept without clients.
    pub(crate) fn new(on_disconnect: OnDisconnect) -> Option<Self> {
        match on_disconnect {
            OnDisconnect::Keep => None,
            OnDisconnect::Stop { after } => {
                Some(Self { count: Arc::new(watch::Sender::new(0)), after })
            }
        }
    }

    pub(crate) fn connect(&self) -> Connected {
        self.count.send_modify(|count| *count += 1);
        Connected(Arc::clone(&self.count))
    }

    /// Stops the process, or what is left of its tree, once nobody has been connected for so long.
    /// Returns early if it has ended and nothing is left.
    pub(crate) fn stop_when_gone(&self, process: Process) -> impl Future<Output = ()> + use<> {
        let gone = until_gone(self.count.subscribe(), self.after);
        async move {
            let mut gone = pin!(gone);
            tokio::select! {
                () = gone.as_mut() => {}
                _ = process.ended() => {
                    if process.survivors().await.is_empty() {
                        return;
                    }
                    gone.await;
                }
            }
            process.stop(Verb::Disconnect).await;
        }
    }
}

/// Every connect and disconnect counts, also one that came and went unseen.
async fn until_gone(mut count: watch::Receiver<usize>, after: Duration) {
    loop {
        let is_connected = *count.borrow_and_update() > 0;
        if is_connected {
            // The process has the sender, and its watcher the process.
            _ = count.changed().await;
        } else if timeout(after, count.changed()).await.is_err() {
            return;
        }
    }
}

impl Connected {
    /// Whether it still matters: the process may be stopped for want of clients.
    pub fn matters(&self) -> bool {
        !self.0.is_closed()
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
