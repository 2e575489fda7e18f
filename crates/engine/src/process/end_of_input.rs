//! The end of input on a terminal, for programs that miss it.
//!
//! A terminal that takes lines keeps the byte that means end of file for its next reader. A program that
//! then turns to single keys, as shells and REPLs do for their prompt, finds nothing of it, and would wait
//! for ever. So if such a program waits for input, the byte is typed once more, as a key.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::Process;
use crate::launch::Streams;
use crate::owner::owner_end::Command;
use crate::tree::{InputEnd, InputState};

/// How long to look for such a program, and how often: it has to start, or to finish what it does.
const PATIENCE: Duration = Duration::from_secs(30);
const INTERVAL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

impl Process {
    /// Whether the end of input, if it is typed now, may be missed.
    pub(crate) async fn may_miss_end(&self) -> bool {
        let takes_lines = |input: InputEnd| input.takes_lines();
        matches!(self.spec().streams, Streams::Pty(_))
            && self.input().await.is_some_and(takes_lines)
    }

    /// Looks for a program that has missed the end of input. Lives no longer than the process.
    pub(crate) fn see_that_input_ends(&self) {
        let process = self.clone();
        tokio::spawn(async move {
            let deadline = Instant::now() + PATIENCE;
            tokio::select! {
                _ = process.ended() => {}
                _ = timeout_at(deadline, process.type_end_again()) => {}
            }
        });
    }

    async fn type_end_again(&self) {
        let (mut pause, mut last) = (INTERVAL.0, None);
        loop {
            sleep_until(Instant::now() + pause).await;
            pause = (pause * 5 / 4).min(INTERVAL.1);
            let Some(input) = self.input().await else { return };
            let reader = match self.shared.tree.needs_input(input).await {
                InputState::Needed(reader) if !input.takes_lines() => Some(reader.pid),
                InputState::Needed(_) | InputState::NotNeeded | InputState::Unknown { .. } => None,
                InputState::Never => return,
            };
            // Twice: some read a key for a moment only.
            if reader.is_some() && reader == last {
                // An owner that is gone has nobody to type for.
                _ = self.shared.owner.send(Command::TypeEnd);
                return;
            }
            if reader.is_some() {
                pause = INTERVAL.0;
            }
            last = reader;
        }
    }

    pub(super) async fn input(&self) -> Option<InputEnd> {
        self.ask(|reply| Command::Input { reply }).await.flatten()
    }
}
