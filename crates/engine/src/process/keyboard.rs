//! The keyboard of a process: one client may take it, and then nobody else can write.
//!
//! Without a holder everybody writes, as they come. The holder can type secrets, which are neither shown
//! nor kept. The keyboard goes back when the [`Keyboard`] is dropped.

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use lastbyte_sys::Errno;
use lastbyte_sys::pty::WindowSize;
use tokio::sync::watch;

use super::Process;
use crate::owner::owner_end::{Command, ResizeError};
use crate::owner::stdin::{Then, WriteError, Written};

/// Who has the keyboard of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyboardHolder {
    /// For people: any client can call itself so.
    pub name: String,
    pub since: SystemTime,
    /// What it types is a secret.
    pub secret: bool,
    client: KeyboardClient,
}

/// Tells those apart who may take the keyboard of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyboardClient(u64);

/// Why a keyboard was not taken, or not switched to secret input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyboardError {
    #[error("the keyboard is with {}", .0.name)]
    Taken(KeyboardHolder),
    #[error("the command was started without standard input")]
    NoInput,
    #[error("the process has exited")]
    Exited,
    #[error("cannot stop the terminal from showing what is typed")]
    Shown(#[source] Errno),
}

/// The holder; `None` while everybody may write.
pub(crate) type Holder = watch::Sender<Option<KeyboardHolder>>;

/// The keyboard of a process, until it is dropped.
#[derive(Debug)]
pub struct Keyboard {
    process: Process,
    client: KeyboardClient,
}

impl Process {
    /// Who has its keyboard.
    pub fn keyboard(&self) -> Option<KeyboardHolder> {
        self.shared.keyboard.get()?.borrow().clone()
    }

    /// The same, and each change of it.
    pub fn keyboard_changes(&self) -> watch::Receiver<Option<KeyboardHolder>> {
        self.shared.keyboard.get_or_init(Holder::default).subscribe()
    }

    /// A client that may take its keyboard.
    pub fn keyboard_client(&self) -> KeyboardClient {
        KeyboardClient(self.shared.keyboards.fetch_add(1, Ordering::Relaxed))
    }

    /// Takes the keyboard, unless somebody has it.
    pub fn take_keyboard(
        &self,
        client: KeyboardClient,
        name: String,
    ) -> Result<Keyboard, KeyboardError> {
        if self.shared.stdin.is_none() {
            return Err(KeyboardError::NoInput);
        }
        let holder = self.shared.keyboard.get_or_init(Holder::default);
        let (mut other, since) = (None, SystemTime::now());
        holder.send_if_modified(|holder| {
            other.clone_from(holder);
            if holder.is_none() {
                *holder = Some(KeyboardHolder { name, since, secret: false, client });
            }
            other.is_none()
        });
        match other {
            Some(other) => Err(KeyboardError::Taken(other)),
            None => Ok(Keyboard { process: self.clone(), client }),
        }
    }

    /// Whether this holder, or a client without the keyboard, may write; and whether that is a secret.
    pub(super) fn may_write(&self, by: Option<KeyboardClient>) -> Result<bool, WriteError> {
        match self.keyboard() {
            Some(holder) if Some(holder.client) == by => Ok(holder.secret),
            Some(_) => Err(WriteError::KeyboardTaken),
            None => Ok(false),
        }
    }
}

impl KeyboardHolder {
    /// Whether it is this client.
    pub fn is(&self, client: KeyboardClient) -> bool {
        self.client == client
    }
}

impl Keyboard {
    /// As [`Process::write`].
    pub async fn write(&self, bytes: Vec<u8>, offset: Option<u64>) -> Result<Written, WriteError> {
        self.process.write_by(Some(self.client), bytes, offset, Then::KeepOpen).await
    }

    /// As [`Process::write_and_close`].
    pub async fn close(&self, offset: Option<u64>) -> Result<Written, WriteError> {
        self.process.close_by(Some(self.client), Vec::new(), offset).await
    }

    /// As [`Process::resize`].
    pub async fn resize(&self, size: WindowSize) -> Result<(), ResizeError> {
        self.process.resize_by(Some(self.client), size).await
    }

    /// Switches secret input on or off. While it is on, the terminal does not show what is typed, and what
    /// is typed is erased once the command has it.
    pub async fn set_secret(&self, on: bool) -> Result<(), KeyboardError> {
        let switched = self.process.ask(|reply| Command::SecretInput { on, reply }).await;
        switched.ok_or(KeyboardError::Exited)?.map_err(KeyboardError::Shown)?;
        self.change(|holder| holder.iter_mut().for_each(|holder| holder.secret = on));
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&mut Option<KeyboardHolder>)) {
        if let Some(holder) = self.process.shared.keyboard.get() {
            holder.send_modify(change);
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        if self.process.keyboard().is_some_and(|holder| holder.secret) {
            let (reply, _) = tokio::sync::oneshot::channel();
            // An owner that is gone has no terminal.
            _ = self.process.shared.owner.send(Command::SecretInput { on: false, reply });
        }
        self.change(|holder| *holder = None);
    }
}
