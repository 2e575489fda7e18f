//! Own standard input to the command's, as fast as the command takes it.

use std::io;

use lastbyte_engine::{Process, StdinOpen, StdinState};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::own_streams;

/// Read at once.
const PIECE: usize = 64 * 1024;
/// What may wait for the command: it is read ahead and gone if the command does not want it.
const MOST_QUEUED: u64 = 256 * 1024;

/// Begins to pass standard input on, if the process takes any. Must be called on a runtime. The
/// thread may wait for input for ever; it does not keep the program from exiting.
pub(crate) fn start(process: &Process) -> io::Result<()> {
    if let Some(state) = process.stdin() {
        let feed = Feed { process: process.clone(), state, runtime: Handle::current() };
        std::thread::Builder::new().name("standard input".into()).spawn(move || feed.run())?;
    }
    Ok(())
}

struct Feed {
    process: Process,
    state: watch::Receiver<StdinState>,
    runtime: Handle,
}

impl Feed {
    fn run(mut self) {
        let mut accepted = 0;
        while self.has_room(accepted) {
            let mut bytes = vec![0; PIECE];
            // What cannot be read is as good as empty.
            let count = own_streams::read_stdin(&mut bytes).unwrap_or(0);
            bytes.truncate(count);
            let end = count == 0;
            let write = async {
                match end {
                    true => self.process.write_and_close(bytes, None).await,
                    false => self.process.write(bytes, None).await,
                }
            };
            match self.runtime.block_on(write) {
                Ok(written) if !end => accepted = written.accepted,
                // Passed on to the end, or nobody there to take it.
                Ok(_) | Err(_) => break,
            }
        }
        own_streams::let_stdin_go();
    }

    /// Waits until another piece fits; `false` when the command takes no more.
    fn has_room(&mut self, accepted: u64) -> bool {
        let fits = |state: &StdinState| accepted - state.written + PIECE as u64 <= MOST_QUEUED;
        let closed = |state: &StdinState| state.open != StdinOpen::Open;
        let room = self.state.wait_for(|state| fits(state) || closed(state));
        self.runtime.block_on(room).is_ok_and(|state| !closed(&state))
    }
}
