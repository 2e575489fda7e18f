//! The file of secrets: how far masking has come, then the secrets. It is in memory only.

use std::io;
use std::os::fd::AsFd;

use lastbyte_output::mask::{MaskState, Secret};
use lastbyte_sys::memory_file;

/// What must be known to go on masking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Checkpoint {
    /// The stream that is about to be stored.
    pub(super) stream: usize,
    /// Where in the log its output goes, from what it has reached on.
    pub(super) log_len: u64,
    pub(super) reached: [Reached; 2],
}

/// How far a stream is masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Reached {
    /// Where in the stream the undecided bytes begin.
    pub(super) begin: u64,
    pub(super) state: MaskState,
}

const WORDS: usize = 8;
const LEN: usize = WORDS * 8;

/// A new file, with the first checkpoint.
pub(super) fn begin(file: impl AsFd, secrets: &[Secret]) -> io::Result<()> {
    let mut bytes = encode(&Checkpoint::default()).to_vec();
    for secret in secrets {
        for part in [secret.name().as_bytes(), secret.value()] {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part);
        }
    }
    Ok(memory_file::append(file, 0, &bytes)?)
}

/// Replaces the checkpoint. It is written as a whole: it lies within a page, and a kill waits for the
/// copy of a page.
pub(super) fn write(file: impl AsFd, checkpoint: &Checkpoint) {
    // It cannot fail: the page is there, because a checkpoint was written to it before.
    _ = memory_file::write_at(file, &encode(checkpoint), 0);
}

pub(super) fn read(file: impl AsFd) -> io::Result<(Checkpoint, Vec<Secret>)> {
    let len = usize::try_from(memory_file::len(&file)?).map_err(io::Error::other)?;
    let mut bytes = vec![0; len];
    let mut done = 0;
    while done < len {
        match memory_file::read_at(&file, &mut bytes[done..], done as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => done += count,
        }
    }
    decode(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn encode(checkpoint: &Checkpoint) -> [u8; LEN] {
    let Checkpoint { stream, log_len, reached: [out, error] } = checkpoint;
    let of = |reached: &Reached| {
        let Reached { begin, state: MaskState { masked, shown } } = *reached;
        [begin, masked, shown as u64]
    };
    let ([a, b, c], [d, e, f]) = (of(out), of(error));
    let mut bytes = [0; LEN];
    let words = [*stream as u64, *log_len, a, b, c, d, e, f];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn decode(bytes: &[u8]) -> Option<(Checkpoint, Vec<Secret>)> {
    let mut from = bytes;
    let mut words = [0; WORDS];
    for word in &mut words {
        *word = number(&mut from)?;
    }
    let [stream, log_len, reached @ ..] = words;
    let of = |[begin, masked, shown]: [u64; 3]| {
        let state = MaskState { masked, shown: usize::try_from(shown).ok()? };
        Some(Reached { begin, state })
    };
    let [a, b, c, d, e, f] = reached;
    let reached = [of([a, b, c])?, of([d, e, f])?];
    let stream = usize::try_from(stream).ok().filter(|stream| *stream < reached.len())?;
    let mut secrets = Vec::new();
    while !from.is_empty() {
        let name = String::from_utf8(part(&mut from)?.to_vec()).ok()?;
        secrets.push(Secret::new(name, part(&mut from)?).ok()?);
    }
    Some((Checkpoint { stream, log_len, reached }, secrets))
}

fn number(from: &mut &[u8]) -> Option<u64> {
    let (word, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u64::from_le_bytes(*word))
}

fn part<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(number(from)?).ok()?;
    let (part, rest) = from.split_at_checked(len)?;
    *from = rest;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoint_and_secrets_read_back_as_they_were_written() {
        let file = memory_file::create("test").unwrap();
        let secrets = [("A", &b"hunter2"[..]), ("B", b"\xff\xfe\r\n--")]
            .map(|(name, value)| Secret::new(name, value).unwrap());
        begin(&file, &secrets).unwrap();
        assert_eq!(read(&file).unwrap(), (Checkpoint::default(), secrets.to_vec()));
        let reached = |begin| Reached { begin, state: MaskState { masked: 7, shown: 2 } };
        let checkpoint = Checkpoint { stream: 1, log_len: 5, reached: [reached(3), reached(4)] };
        write(&file, &checkpoint);
        assert_eq!(read(&file).unwrap(), (checkpoint, secrets.to_vec()));
    }
}
