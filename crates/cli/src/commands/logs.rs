//! `lastbyte logs`: the output of a process, byte for byte.

mod since;
mod stamped;

use std::borrow::Cow;
use std::pin::pin;

use lastbyte_client::wire::{Content, Output, OutputQuery, Phase, Stamp, TimesQuery, View};
use lastbyte_client::{Client, RawOutput};
use lastbyte_sys::Errno;
use regex::bytes::Regex;

use crate::exit_code::help::{self, Code};
use crate::line_filter::LineFilter;
use crate::output_args::OutputArgs;
use crate::process_args::ProcessArgs;
use crate::{own_streams, tell};

/// Write the output of a process to standard output, byte for byte
///
/// Without -f it is what there is now. What was dropped to stay within the quota is told on
/// standard error. A reader that goes away is no error.
///
/// Of --tail, --grep and --head the first is done first: of the last lines those that match, and of
/// these the first. With one of these or --timestamps, a line ends where bytes were dropped, and what
/// follows begins another.
///
/// When a byte came is known to a tenth of a second: --since may begin that much too early, and
/// --timestamps may tell a time that is that much too early.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// Go on until the process has ended and its last byte is written; with --late until nobody can
    /// write any more
    #[arg(short, long)]
    follow: bool,

    /// Begin at this byte; a negative number counts from the end
    #[arg(long, value_name = "CURSOR", allow_hyphen_values = true, default_value_t = 0)]
    from: i64,

    /// Begin with the last so many lines; with -f go on from there
    #[arg(long, value_name = "COUNT", conflicts_with = "from")]
    tail: Option<u64>,

    /// Begin with what came this long ago (5m) or at this time (2026-11-16T07:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = since::parse, allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["from", "tail"])]
    since: Option<u64>,

    /// End behind so many lines
    #[arg(long, value_name = "COUNT", conflicts_with = "json")]
    head: Option<u64>,

    /// Only lines that match this regular expression
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true, conflicts_with = "json")]
    grep: Option<Regex>,

    /// Begin each line with the time (UTC) at which its first byte came; with --json say it as `stamps`
    #[arg(short, long)]
    timestamps: bool,

    #[command(flatten)]
    output: OutputArgs,

    /// Write each piece as a line of JSON, with all that the server says beside it
    #[arg(long)]
    json: bool,
}

fn exit_codes() -> String {
    let followed = (Code::OfSignal, "-f was ended by signal N: 130 for Ctrl-C");
    help::list([help::DONE, help::UNUSABLE, help::NO_PROCESS, followed])
}

/// What is asked for at once.
const PIECE: u64 = 1 << 20;
/// As much text of lines as a server gives at once.
const MOST_OF_LINES: u64 = 4 << 20;
/// How long the server keeps a question for output that has not come yet.
const WAIT_MS: u64 = 30_000;
/// As many stamps as a server gives at once.
const MOST_STAMPS: u64 = 10_000;

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (client, id) = args.process.find().await?;
    match args.timestamps && !args.json {
        true => stamped::run(args, &client, &id).await,
        false => run_plain(args, &client, &id).await,
    }
}

async fn run_plain(args: &Args, client: &Client, id: &str) -> anyhow::Result<u8> {
    let mut cursor = args.begin(client, id).await?;
    let mut filter = LineFilter::new(args.grep.clone(), args.head);
    // Without -f: where the output ended when we first looked.
    let mut end = None;
    let mut reader_gone = pin!(own_streams::stdout_reader_gone());
    loop {
        let piece = tokio::select! {
            piece = args.piece(client, id, cursor, end) => piece?,
            () = &mut reader_gone => return Ok(0),
        };
        if u64::try_from(cursor).is_ok_and(|cursor| piece.from > cursor) {
            if args.is_of_lines() {
                write(&filter.gap())?;
            }
            tell_dropped(&piece, cursor.unsigned_abs());
        }
        let shown = match args.json {
            true => Cow::Owned(args.json_line(client, id, &piece).await?),
            false => filter.pass(&piece.bytes, ""),
        };
        if write(&shown)? == Reader::Gone || filter.is_full() {
            return Ok(0);
        }
        let end = *end.get_or_insert(args.end(&piece));
        if args.finished(&piece, end) {
            write(&filter.finish())?;
            return Ok(0);
        }
        cursor = i64::try_from(piece.next).unwrap_or(i64::MAX);
    }
}

impl Args {
    async fn piece(
        &self,
        client: &Client,
        id: &str,
        cursor: i64,
        end: Option<u64>,
    ) -> anyhow::Result<RawOutput> {
        let left = end.map(|end| end.saturating_sub(cursor.unsigned_abs()).max(1));
        let query = OutputQuery {
            from: Some(cursor),
            max_bytes: Some(match self.follow {
                true => PIECE,
                false => left.unwrap_or(PIECE).min(PIECE),
            }),
            stream: self.output.stream,
            late: Some(self.output.late),
            wait_ms: self.follow.then_some(WAIT_MS),
            ..OutputQuery::default()
        };
        Ok(client.raw(id, &query).await?)
    }

    /// Whether lines are asked for, and not the bytes as they are.
    fn is_of_lines(&self) -> bool {
        !self.json && (self.tail.is_some() || self.head.is_some() || self.grep.is_some())
    }

    /// The cursor to begin at.
    async fn begin(&self, client: &Client, id: &str) -> anyhow::Result<i64> {
        let count = match (self.since, self.tail) {
            (Some(since), _) => return self.first_since(client, id, since).await,
            (None, None) => return Ok(self.from),
            (None, Some(count)) => count,
        };
        let query = OutputQuery {
            view: Some(View::Lines),
            // None is no number of lines to the server.
            last: Some(count.max(1)),
            max_bytes: Some(MOST_OF_LINES),
            stream: self.output.stream,
            late: Some(self.output.late),
            ..OutputQuery::default()
        };
        let view = client.output(id, &query).await?;
        let lines = match &view.content {
            Content::Lines { lines } if count > 0 => lines.as_slice(),
            _ => &[],
        };
        let Some(first) = lines.first() else { return Ok(i64::try_from(view.next)?) };
        let start = first.range.start;
        if (lines.len() as u64) < count && self.has_something_before(client, id, start).await? {
            let shown = lines.len();
            tell::line(format_args!(
                "these are the last {shown} lines; more do not fit into 4 MiB"
            ));
        }
        Ok(i64::try_from(start)?)
    }

    /// The cursor of the first byte that may have come at this time or later.
    async fn first_since(&self, client: &Client, id: &str, unix_ns: u64) -> anyhow::Result<i64> {
        let query = TimesQuery {
            since_unix_ns: Some(unix_ns),
            late: Some(self.output.late),
            max_stamps: Some(1),
            ..TimesQuery::default()
        };
        let from = client.times(id, &query).await?.from;
        since::tell_if_ahead(self);
        Ok(i64::try_from(from)?)
    }

    async fn has_something_before(
        &self,
        client: &Client,
        id: &str,
        cursor: u64,
    ) -> anyhow::Result<bool> {
        let first = OutputQuery {
            from: Some(0),
            max_bytes: Some(1),
            stream: self.output.stream,
            ..OutputQuery::default()
        };
        let first = client.raw(id, &first).await?;
        Ok(!first.bytes.is_empty() && first.next <= cursor)
    }

    /// The words of the API for a piece, and when it came if that is wanted.
    async fn json_line(
        &self,
        client: &Client,
        id: &str,
        piece: &RawOutput,
    ) -> anyhow::Result<Vec<u8>> {
        let mut value = serde_json::to_value(as_output(piece))?;
        if self.timestamps {
            value["stamps"] = serde_json::to_value(self.stamps(client, id, piece).await?)?;
        }
        let mut line = serde_json::to_vec(&value)?;
        line.push(b'\n');
        Ok(line)
    }

    async fn stamps(
        &self,
        client: &Client,
        id: &str,
        piece: &RawOutput,
    ) -> anyhow::Result<Vec<Stamp>> {
        let (mut from, mut stamps) = (piece.from, Vec::new());
        while from < piece.next {
            let query = TimesQuery {
                from: Some(from),
                to: Some(piece.next),
                late: Some(self.output.late),
                max_stamps: Some(MOST_STAMPS),
                since_unix_ns: None,
            };
            let answer = client.times(id, &query).await?;
            stamps.extend(answer.stamps);
            // A server that does not go on is not asked for ever.
            from = answer.next.max(from + 1);
        }
        Ok(stamps)
    }

    /// Where the output ends at the instant of this piece.
    fn end(&self, piece: &RawOutput) -> u64 {
        match self.output.late {
            true => piece.total,
            false => piece.final_len.unwrap_or(piece.total),
        }
    }

    fn finished(&self, piece: &RawOutput, end_at_first: u64) -> bool {
        match (self.follow, self.output.late) {
            (false, _) => piece.next >= end_at_first,
            (true, false) => piece.phase == Phase::Ended && piece.next >= self.end(piece),
            (true, true) => !piece.log_open && piece.next >= piece.total,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Reader {
    There,
    Gone,
}

fn write(bytes: &[u8]) -> anyhow::Result<Reader> {
    match own_streams::write_all(rustix::stdio::stdout(), bytes) {
        Ok(()) => Ok(Reader::There),
        Err(Errno::PIPE) => Ok(Reader::Gone),
        Err(errno) => Err(anyhow::Error::new(errno).context("cannot write to standard output")),
    }
}

fn as_output(piece: &RawOutput) -> Output {
    Output {
        from: piece.from,
        next: piece.next,
        total: piece.total,
        dropped: piece.dropped.clone(),
        phase: piece.phase,
        log_open: piece.log_open,
        final_len: piece.final_len,
        ending: piece.ending.clone(),
        content: Content::Raw { base64: base64_simd::STANDARD.encode_to_string(&piece.bytes) },
    }
}

/// Says which bytes from the cursor to the piece are gone.
fn tell_dropped(piece: &RawOutput, cursor: u64) {
    for range in &piece.dropped {
        let (start, end) = (range.start.max(cursor), range.end.min(piece.from));
        if start < end {
            tell_gone(start, end);
        }
    }
}

fn tell_gone(start: u64, end: u64) {
    tell::line(format_args!("{} bytes were dropped: {start}-{end}", end - start));
}
