//! Each line behind the time at which its first byte came.

use std::pin::pin;

use lastbyte_client::wire::{FollowQuery, Process, Stream};
use lastbyte_client::{Client, Followed, Piece};

use super::{Args, Reader, tell_gone, write};
use crate::line_filter::LineFilter;
use crate::{own_streams, rfc3339};

/// Returns the exit code.
///
/// It follows the log, whether or not it is to go on: only so bytes and times are of one look.
pub(super) async fn run(args: &Args, client: &Client, id: &str) -> anyhow::Result<u8> {
    let end = args.ends_at(&client.show(id).await?);
    let from = args.begin(client, id).await?;
    let is_past = |end: u64| u64::try_from(from).is_ok_and(|from| from >= end) || end == 0;
    if end.is_some_and(is_past) {
        return Ok(0);
    }
    let query = FollowQuery { from: Some(from), late: Some(args.output.late), times: Some(true) };
    let mut following = client.follow(id, &query).await?;
    let mut filter = LineFilter::new(args.grep.clone(), args.head);
    let mut reader_gone = pin!(own_streams::stdout_reader_gone());
    loop {
        let followed = tokio::select! {
            followed = following.next() => followed?,
            () = &mut reader_gone => return Ok(0),
        };
        let reached = match followed {
            Some(Followed::Output(piece) | Followed::Late(piece)) => {
                if args.show(&piece, &mut filter)? == Reader::Gone || filter.is_full() {
                    return Ok(0);
                }
                piece.range.end
            }
            Some(Followed::Dropped(range)) => {
                write(&filter.gap())?;
                tell_gone(range.start, range.end);
                if filter.is_full() {
                    return Ok(0);
                }
                range.end
            }
            Some(Followed::Ending(_)) if args.output.late => continue,
            Some(Followed::Ending(_)) | None => break,
        };
        if end.is_some_and(|end| reached >= end) {
            break;
        }
    }
    write(&filter.finish())?;
    Ok(0)
}

impl Args {
    /// Where the output ends that is there now; `None` if it is to go on.
    fn ends_at(&self, process: &Process) -> Option<u64> {
        let proper = process.ending.as_ref().map_or(process.total, |ending| ending.final_len);
        let end = if self.output.late { process.total } else { proper };
        Some(end).filter(|_| !self.follow)
    }

    fn show(&self, piece: &Piece, filter: &mut LineFilter) -> anyhow::Result<Reader> {
        // Streams that are not told apart are all standard output.
        let stream = piece.stream.unwrap_or(Stream::Stdout);
        if self.output.stream.is_some_and(|wanted| wanted != stream) {
            return Ok(Reader::There);
        }
        let time = piece.at_unix_ns.map(|at| format!("{} ", rfc3339::milliseconds(at)));
        write(&filter.pass(&piece.bytes, &time.unwrap_or_default()))
    }
}
