//! A receipt: what was run, under which terms, how it ended, and the hash of its output.

use std::io;

use lastbyte_engine::{Errno, Kept, LogSource, Process, Snapshot};
use lastbyte_output::views::{Read, Source};
use lastbyte_wire::{Error, OutputHash, Receipt};
use sha2::{Digest, Sha256};

use super::long_read;
use crate::{App, to_wire};

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// Reads all output, if it is complete: a receipt takes as long as that.
pub async fn receipt(app: &App, process: &Process) -> Result<Receipt, Error> {
    let before = process.snapshot();
    let (output_hash, snapshot) = match reason_for_none(&before) {
        Some(reason) => (reason, before),
        None => {
            let _permit = app.begin_wait()?;
            let bytes = before.output_len();
            let source = LogSource::output(process.reader(), before);
            let hash = long_read::in_turn(app, process, (source, bytes), hash).await?;
            // Something may have been dropped while it was read.
            let after = process.snapshot();
            (reason_for_none(&after).unwrap_or(hash), after)
        }
    };
    let spec = process.spec();
    let name = |name: &std::ffi::OsString| name.to_string_lossy().into_owned();
    Ok(Receipt {
        process: to_wire::process(process, &snapshot),
        env_names: spec.env_names.iter().map(name).collect(),
        secret_names: spec.secret_names.clone(),
        enforcement: spec.enforcement.map(to_wire::enforcement),
        stop: to_wire::stop_policy(spec.stop),
        limits: to_wire::limits(spec),
        output_hash,
    })
}

/// Why the output has no hash; `None` if every byte of it can be read.
fn reason_for_none(snapshot: &Snapshot) -> Option<OutputHash> {
    let Some(ending) = snapshot.ending() else { return Some(OutputHash::NotEnded) };
    let dropped = snapshot.extent.dropped.below(ending.final_len);
    if !dropped.is_empty() {
        return Some(OutputHash::Dropped { dropped: to_wire::dropped(&dropped) });
    }
    let why = match &ending.kept {
        Kept::Whole => return None,
        Kept::Dropped(dropped) => {
            return Some(OutputHash::Dropped { dropped: to_wire::dropped(dropped) });
        }
        Kept::Failed { failed, .. } if failed.errno == Errno::PIPE => {
            format!("the output was cut at byte {}, in a crash of the server", failed.at)
        }
        Kept::Failed { failed, .. } => {
            format!("writing the output failed at byte {}: {}", failed.at, failed.errno)
        }
        Kept::Unknown => "nobody saw the end, so there may have been more output".into(),
    };
    Some(OutputHash::Incomplete { why })
}

/// Of all that the source has, or the first gap in it.
fn hash(source: &dyn Source) -> io::Result<OutputHash> {
    let mut hasher = Sha256::new();
    let (mut buffer, mut at) = (vec![0; CHUNK], 0);
    while at < source.end() {
        match source.read_at(at, &mut buffer)? {
            Read::Bytes(0) | Read::Other { .. } => {
                let message = format!("it ends at byte {at} instead of {}", source.end());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
            }
            Read::Bytes(count) => {
                hasher.update(&buffer[..count]);
                at += count as u64;
            }
            Read::Dropped(range) => {
                return Ok(OutputHash::Dropped { dropped: vec![to_wire::range(&range)] });
            }
        }
    }
    let hex = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(OutputHash::Sha256 { hex, bytes: at })
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    /// A log of 8 bytes, with this behind the first 4.
    struct Then(Read);

    impl Source for Then {
        fn end(&self) -> u64 {
            8
        }

        fn dropped(&self) -> &[Range<u64>] {
            &[]
        }

        fn read_at(&self, at: u64, _: &mut [u8]) -> io::Result<Read> {
            Ok(if at < 4 { Read::Bytes(4) } else { self.0.clone() })
        }
    }

    #[test]
    fn a_gap_that_appears_while_the_output_is_read_leaves_no_hash() {
        let dropped = vec![lastbyte_wire::Range { start: 4, end: 6 }];
        let hashed = hash(&Then(Read::Dropped(4..6))).unwrap();
        assert_eq!(hashed, OutputHash::Dropped { dropped });
    }

    #[test]
    fn a_log_that_is_shorter_than_its_output_is_an_error() {
        let error = hash(&Then(Read::Bytes(0))).unwrap_err();
        assert_eq!(error.to_string(), "it ends at byte 4 instead of 8");
    }
}
