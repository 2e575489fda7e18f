//! How many of something are under way, for those that have to wait until there are none.

use tokio::sync::watch;

/// Each one under way holds a receiver of a channel on which nothing is ever sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight(watch::Sender<()>);

/// One of them, until it is dropped.
pub(crate) type Ongoing = watch::Receiver<()>;

impl InFlight {
    pub(crate) fn begin(&self) -> Ongoing {
        self.0.subscribe()
    }

    /// Waits until none is.
    pub(crate) async fn until_none(&self) {
        self.0.closed().await;
    }
}
