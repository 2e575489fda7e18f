//! Our ends of a process's pipes or terminal, each entered in its slot while it is open.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use lastbyte_output::mask::Secret;
use lastbyte_sys::pipe;
use lastbyte_sys::registry::{Entered, Purpose, Slot};
use lastbyte_sys::spawn::OutputEnds;

use super::pump::Masking;

/// What there is of them. Made before the leader is born, or taken over from an earlier worker.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub(crate) output: Option<Entered>,
    pub(crate) error: Option<Entered>,
    /// The ends of the pipe that a terminal's output goes through.
    pub(crate) gathered: Option<Entered>,
    pub(crate) gathering: Option<Entered>,
    pub(crate) terminal: Option<Entered>,
    /// Those of input, which its queue enters.
    pub(crate) input: Option<OwnedFd>,
    pub(crate) accepted: Option<OwnedFd>,
    /// What an earlier worker had to mask the output with.
    secrets: Option<Entered>,
    staged: Option<Entered>,
    staged_error: Option<Entered>,
    pub(crate) masking: Option<Box<Masking>>,
}

impl Ends {
    /// Those of the output; input has a queue of its own.
    pub(crate) fn new(output: OutputEnds, slot: Option<&Arc<Slot>>) -> io::Result<Self> {
        let mut ends = Self::default();
        let mut enter = |purpose, end| ends.enter(purpose, end, slot);
        match output {
            OutputEnds::Merged(pipe) => enter(Purpose::Output, pipe),
            OutputEnds::Split { stdout, stderr } => {
                enter(Purpose::Output, stdout);
                enter(Purpose::Error, stderr);
            }
            OutputEnds::Pty { ours, terminal } => {
                enter(Purpose::Output, ours);
                enter(Purpose::Terminal, terminal);
                let (read, write) = pipe::pipe()?;
                pipe::set_nonblocking(&read)?;
                enter(Purpose::Gathered, read);
                enter(Purpose::Gathering, write);
            }
        }
        Ok(ends)
    }

    /// Those that an earlier worker had open.
    pub(crate) fn taken_over(found: Vec<(Purpose, OwnedFd)>, slot: &Arc<Slot>) -> Self {
        let mut ends = Self::default();
        found.into_iter().for_each(|(purpose, end)| ends.enter(purpose, end, Some(slot)));
        ends
    }

    /// Masks these secrets in the output.
    pub(crate) fn mask(&mut self, secrets: &[Secret], slot: Option<&Arc<Slot>>) -> io::Result<()> {
        if !secrets.is_empty() {
            self.masking = Some(Box::new(Masking::create(secrets, slot, self.error.is_some())?));
        }
        Ok(())
    }

    /// Goes on masking the output. If that is impossible the output is given up: it is never stored as
    /// it is.
    pub(crate) fn go_on_masking(&mut self) -> io::Result<()> {
        let staged = [self.staged.take(), self.staged_error.take()];
        let file = self.secrets.take().ok_or(io::ErrorKind::NotFound);
        match file.map_err(Into::into).and_then(|file| Masking::resume(file, staged)) {
            Ok(masking) => self.masking = Some(Box::new(masking)),
            Err(error) => {
                (self.output, self.error, self.gathered, self.gathering) = (None, None, None, None);
                return Err(error);
            }
        }
        Ok(())
    }

    pub(crate) fn has_output(&self) -> bool {
        self.output.is_some() || self.error.is_some()
    }

    fn enter(&mut self, purpose: Purpose, end: OwnedFd, slot: Option<&Arc<Slot>>) {
        let place = match purpose {
            Purpose::Output => &mut self.output,
            Purpose::Error => &mut self.error,
            Purpose::Gathered => &mut self.gathered,
            Purpose::Gathering => &mut self.gathering,
            Purpose::Terminal => &mut self.terminal,
            Purpose::Input => return self.input = Some(end),
            Purpose::Accepted => return self.accepted = Some(end),
            Purpose::Secrets => &mut self.secrets,
            Purpose::Staged => &mut self.staged,
            Purpose::StagedError => &mut self.staged_error,
        };
        *place = Some(Entered::new(end, slot, purpose));
    }
}
