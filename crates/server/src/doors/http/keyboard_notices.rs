//! What an attached client is told of the keyboard.

use std::future::pending;

use lastbyte_engine::{KeyboardClient, KeyboardHolder};
use lastbyte_wire::AttachNotice;
use tokio::sync::watch;

use crate::to_wire;

/// Who has the keyboard, as one client sees it.
pub(super) struct KeyboardNotices {
    holder: watch::Receiver<Option<KeyboardHolder>>,
    client: KeyboardClient,
    told: Option<KeyboardHolder>,
}

impl KeyboardNotices {
    pub(super) fn new(
        holder: watch::Receiver<Option<KeyboardHolder>>,
        client: KeyboardClient,
    ) -> Self {
        Self { holder, client, told: None }
    }

    /// Waits for another holder than the client was told of; at first for one. Cancel-safe.
    pub(super) async fn next(&mut self) -> AttachNotice {
        let told = &self.told;
        let Ok(now) = self.holder.wait_for(|now| now != told).await else {
            return pending().await;
        };
        let now = now.clone();
        self.told.clone_from(&now);
        let yours = now.as_ref().is_some_and(|holder| holder.is(self.client));
        AttachNotice::Keyboard { yours, keyboard: now.map(to_wire::keyboard) }
    }
}
