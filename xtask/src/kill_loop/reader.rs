//! The output of a process as it comes, over however many connections, without a gap or a repeat.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use lastbyte_client::wire::{AttachNotice, AttachQuery, FollowQuery, OutputQuery, Stream};
use lastbyte_client::{Attached, Client, Followed, FromProcess};
use tokio::time::{Instant, sleep_until};

use super::client::{again, is_away, pause};
use super::job::{Output, Reader};

/// What a reader saw.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) bytes: Vec<u8>,
    /// By stream, from a reader that is told the stream.
    streams: Option<[Vec<u8>; 2]>,
}

impl Seen {
    /// How it differs from what was written.
    pub(super) fn problems(&self, output: &Output) -> Vec<String> {
        let mut found = Vec::new();
        let mut check = |what: &str, seen: &[u8], wanted: &[u8]| {
            if let Some(problem) = compare(seen, wanted, output.may_be_cut) {
                found.push(format!("seen {what}: {problem}"));
            }
        };
        match (&output.stderr, &self.streams) {
            (None, _) => check("output", &self.bytes, &output.stdout),
            (Some(stderr), Some([out, err])) => {
                check("stdout", out, &output.stdout);
                check("stderr", err, stderr);
            }
            (Some(stderr), None) => {
                let wanted = output.stdout.len() + stderr.len();
                if self.bytes.len() != wanted {
                    found.push(format!("seen {} bytes instead of {wanted}", self.bytes.len()));
                }
            }
        }
        found
    }

    fn add(&mut self, bytes: &[u8], stream: Option<Stream>) {
        self.bytes.extend_from_slice(bytes);
        if let Some(stream) = stream {
            let [out, err] = self.streams.get_or_insert_default();
            match stream {
                Stream::Stdout => out.extend_from_slice(bytes),
                Stream::Stderr => err.extend_from_slice(bytes),
            }
        }
    }
}

/// What is wrong with the bytes.
pub(super) fn compare(seen: &[u8], wanted: &[u8], may_be_cut: bool) -> Option<String> {
    let common = seen.iter().zip(wanted).take_while(|(seen, wanted)| seen == wanted).count();
    let is_right = common == seen.len() && (common == wanted.len() || may_be_cut);
    let (seen, wanted) = (seen.len(), wanted.len());
    (!is_right).then(|| format!("{seen} bytes instead of {wanted}, the first {common} are right"))
}

/// Reads until no more can come.
pub(super) async fn read(client: &Client, id: &str, reader: Reader) -> Result<Seen> {
    match reader {
        Reader::Follow => follow(client, id, Duration::ZERO).await,
        Reader::FollowSlowly => follow(client, id, Duration::from_millis(20)).await,
        Reader::Poll => poll(client, id).await,
        Reader::Attach => attach(client, id).await,
    }
}

async fn follow(client: &Client, id: &str, pause_after_each: Duration) -> Result<Seen> {
    let query = FollowQuery { late: Some(true), ..FollowQuery::default() };
    let mut following = again(|| client.follow(id, &query)).await?;
    let (mut seen, mut has_ended) = (Seen::default(), false);
    loop {
        match following.next().await {
            Ok(Some(Followed::Output(piece) | Followed::Late(piece))) => {
                let at = seen.bytes.len() as u64;
                ensure!(piece.range.start == at, "{:?} follows {at}", piece.range);
                seen.add(&piece.bytes, piece.stream);
                let at = seen.bytes.len() as u64;
                ensure!(piece.range.end == at, "{:?} ends at {at}", piece.range);
                sleep_until(Instant::now() + pause_after_each).await;
            }
            Ok(Some(Followed::Dropped(range))) => bail!("dropped {range:?}"),
            Ok(Some(Followed::Ending(_))) => {
                ensure!(!has_ended, "the ending was told twice");
                has_ended = true;
            }
            Ok(None) => return Ok(seen),
            Err(error) if is_away(&error) => pause().await,
            Err(error) => return Err(error.into()),
        }
    }
}

async fn poll(client: &Client, id: &str) -> Result<Seen> {
    let mut seen = Seen::default();
    loop {
        let at = seen.bytes.len() as u64;
        let query = OutputQuery {
            from: Some(at.cast_signed()),
            late: Some(true),
            max_bytes: Some(1 << 20),
            wait_ms: Some(30_000),
            ..OutputQuery::default()
        };
        let piece = again(|| client.raw(id, &query)).await?;
        ensure!(piece.from == at, "{} follows {at}", piece.from);
        seen.add(&piece.bytes, None);
        if !piece.log_open && piece.next >= piece.total {
            return Ok(seen);
        }
    }
}

async fn attach(client: &Client, id: &str) -> Result<Seen> {
    let (mut seen, mut has_ended) = (Seen::default(), false);
    loop {
        let from = Some(seen.bytes.len() as i64);
        let query = AttachQuery { from, late: Some(true), ..AttachQuery::default() };
        let Attached { mut reader, writer, .. } = again(|| client.attach(id, &query)).await?;
        loop {
            match reader.next().await {
                Ok(Some(FromProcess::Output(bytes))) => seen.add(&bytes, None),
                Ok(Some(FromProcess::Notice(AttachNotice::Ending { .. }))) => has_ended = true,
                Ok(Some(FromProcess::Notice(notice))) => bail!("unexpected: {notice:?}"),
                // The last of it, if the server said before that it has ended.
                Ok(None) if has_ended => return Ok(seen),
                Ok(None) => break,
                Err(error) if is_away(&error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        drop(writer);
        pause().await;
    }
}
