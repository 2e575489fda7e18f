//! Where `logs` reads the output: by one request after the other, or, with times, from a log that
//! is followed, since only there bytes come with their times.

use bytes::Bytes;
use lastbyte_client::wire::{
    Content, Ending, FollowQuery, Output, OutputQuery, Process, Range, Stamp, Stream, TimesQuery,
};
use lastbyte_client::{Client, Followed, Following, Piece, RawOutput};
use serde_json::Value;

use super::Args;
use super::json_parts::{JsonParts, Rest};
use crate::format;

/// The next part of the output.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Bytes are missing before it: these, as far as they are known.
    pub(super) gap: Option<Vec<Range>>,
    pub(super) bytes: Bytes,
    /// The prefix of each line that begins here.
    pub(super) stamp: String,
}

pub(super) enum Source<'a> {
    Polled(Polled<'a>),
    Followed(Box<Stamped<'a>>),
}

impl<'a> Source<'a> {
    pub(super) async fn open(
        args: &'a Args,
        client: &'a Client,
        id: &'a str,
    ) -> anyhow::Result<Self> {
        if args.timestamps && !args.json {
            return Ok(Self::Followed(Box::new(Stamped::open(args, client, id).await?)));
        }
        let cursor = args.begin(client, id).await?;
        Ok(Self::Polled(Polled {
            args,
            client,
            id,
            cursor,
            end: None,
            over: false,
            ending: None,
            late_bytes: 0,
            parts: JsonParts::default(),
        }))
    }

    /// `None` at the end.
    pub(super) async fn next(&mut self) -> anyhow::Result<Option<Part>> {
        match self {
            Self::Polled(polled) => polled.next().await,
            Self::Followed(stamped) => stamped.next().await,
        }
    }

    /// The ending, if there is one, as far as the parts have told.
    pub(super) fn ending(&self) -> Option<&Ending> {
        match self {
            Self::Polled(polled) => polled.ending.as_deref(),
            Self::Followed(stamped) => stamped.ending.as_ref(),
        }
    }

    /// How many bytes were written after the end, as far as is known.
    pub(super) fn late_bytes(&self) -> u64 {
        match self {
            Self::Polled(polled) => polled.late_bytes,
            Self::Followed(stamped) => stamped.late_bytes,
        }
    }
}

pub(super) struct Polled<'a> {
    args: &'a Args,
    client: &'a Client,
    id: &'a str,
    cursor: i64,
    /// Without -f: where the output ended when we first looked.
    end: Option<u64>,
    over: bool,
    ending: Option<Box<Ending>>,
    late_bytes: u64,
    /// For --json.
    parts: JsonParts,
}

/// How much is asked for at once.
const PIECE: u64 = 1 << 20;
/// How long the server holds a request for output that has not arrived yet.
const WAIT_MS: u64 = 30_000;

impl Polled<'_> {
    async fn next(&mut self) -> anyhow::Result<Option<Part>> {
        if self.over {
            return Ok(None);
        }
        let piece = self.client.raw(self.id, &self.query()).await?;
        let before = u64::try_from(self.cursor).ok().filter(|cursor| piece.from > *cursor);
        let gap = before.map(|cursor| dropped_from(&piece, cursor));
        let end_now = self.args.end(piece.total, piece.final_len);
        let end_at_first = *self.end.get_or_insert(end_now);
        self.over = match (self.args.follow, self.args.output.late) {
            (false, _) => piece.next >= end_at_first,
            (true, false) => piece.phase.has_ending() && piece.next >= end_now,
            (true, true) => !piece.log_open && piece.next >= end_now,
        };
        self.late_bytes = piece.final_len.map_or(0, |end| piece.total.saturating_sub(end));
        self.ending = piece.ending.clone().map(Box::new);
        self.cursor = i64::try_from(piece.next).unwrap_or(i64::MAX);
        let bytes = if self.args.json { self.json_lines(piece).await? } else { piece.bytes };
        Ok(Some(Part { gap, bytes, stamp: String::new() }))
    }

    fn query(&self) -> OutputQuery {
        let left = self.end.filter(|_| !self.args.follow);
        let left = left.map(|end| end.saturating_sub(self.cursor.unsigned_abs()).max(1));
        OutputQuery {
            from: Some(self.cursor),
            max_bytes: Some(left.unwrap_or(PIECE).min(PIECE)),
            stream: self.args.output.stream,
            late: Some(self.args.output.late),
            wait_ms: self.args.follow.then_some(WAIT_MS),
            ..OutputQuery::default()
        }
    }

    /// The piece as the API has it: a line, or one for the text and one for what is not text.
    async fn json_lines(&mut self, mut piece: RawOutput) -> anyhow::Result<Bytes> {
        let mut lines = String::new();
        let rest = if self.over { Rest::Nothing } else { Rest::More };
        for (range, content) in self.parts.split(piece.from..piece.next, &piece.bytes, rest) {
            (piece.from, piece.next) = (range.start, range.end);
            lines += &self.json_line(&piece, content).await?;
        }
        Ok(lines.into())
    }

    /// With the times at which it arrived, if they are wanted.
    async fn json_line(&self, piece: &RawOutput, content: Value) -> anyhow::Result<String> {
        let mut value = as_output(piece)?;
        value["content"] = content;
        if self.args.ids.len() != 1 {
            value["process"] = self.id.into();
        }
        if self.args.timestamps {
            value["stamps"] = serde_json::to_value(self.stamps(piece.from..piece.next).await?)?;
        }
        Ok(format!("{value}\n"))
    }

    async fn stamps(&self, range: std::ops::Range<u64>) -> anyhow::Result<Vec<Stamp>> {
        let (mut from, mut stamps) = (range.start, Vec::new());
        while from < range.end {
            let query = TimesQuery {
                from: Some(from),
                to: Some(range.end),
                late: Some(self.args.output.late),
                max_stamps: Some(TimesQuery::MOST_STAMPS),
                since_unix_ns: None,
            };
            let answer = self.client.times(self.id, &query).await?;
            stamps.extend(answer.stamps);
            // A server that does not advance is not asked for ever.
            from = answer.next.max(from + 1);
        }
        Ok(stamps)
    }
}

pub(super) struct Stamped<'a> {
    args: &'a Args,
    /// `None` at the end.
    following: Option<Following>,
    /// Without -f: where the output ended when we first looked.
    end: Option<u64>,
    ending: Option<Ending>,
    late_bytes: u64,
}

impl<'a> Stamped<'a> {
    async fn open(args: &'a Args, client: &Client, id: &str) -> anyhow::Result<Self> {
        let process = client.show(id).await?;
        let late_bytes = format::late_bytes(&process);
        let Process { total, ending, .. } = process;
        let final_len = ending.as_ref().map(|ending| ending.final_len);
        let end = (!args.follow).then(|| args.end(total, final_len));
        let from = args.begin(client, id).await?;
        let is_past = |end: u64| u64::try_from(from).is_ok_and(|from| from >= end) || end == 0;
        if end.is_some_and(is_past) {
            return Ok(Self { args, following: None, end, ending, late_bytes });
        }
        let late = Some(args.output.late);
        let query = FollowQuery { from: Some(from), late, times: Some(true) };
        let following = Some(client.follow(id, &query).await?);
        Ok(Self { args, following, end, ending, late_bytes })
    }

    async fn next(&mut self) -> anyhow::Result<Option<Part>> {
        let Some(following) = &mut self.following else { return Ok(None) };
        let (part, reached) = loop {
            match following.next().await? {
                Some(Followed::Output(piece) | Followed::Late(piece)) => {
                    let reached = piece.range.end;
                    break (self.args.stamped(piece), reached);
                }
                Some(Followed::Dropped(range)) => {
                    let reached = range.end;
                    break (Part { gap: Some(vec![range]), ..Part::default() }, reached);
                }
                Some(Followed::Ending(ending)) => {
                    self.ending = Some(*ending);
                    if !self.args.output.late {
                        return Ok(None);
                    }
                }
                None => return Ok(None),
            }
        };
        if self.end.is_some_and(|end| reached >= end) {
            self.following = None;
        }
        Ok(Some(part))
    }
}

impl Args {
    /// Where the requested output ends, as far as it exists.
    fn end(&self, total: u64, final_len: Option<u64>) -> u64 {
        final_len.filter(|_| !self.output.late).unwrap_or(total)
    }

    /// Empty for a stream that is not wanted.
    fn stamped(&self, piece: Piece) -> Part {
        // Streams that are not kept apart are all standard output.
        let stream = piece.stream.unwrap_or(Stream::Stdout);
        if self.output.stream.is_some_and(|wanted| wanted != stream) {
            return Part::default();
        }
        let time = piece.at_unix_ns.map(|at| format!("{} ", self.zone.milliseconds(at)));
        Part { gap: None, bytes: piece.bytes.into(), stamp: time.unwrap_or_default() }
    }
}

/// All but the content.
fn as_output(piece: &RawOutput) -> serde_json::Result<Value> {
    serde_json::to_value(Output {
        from: piece.from,
        next: piece.next,
        total: piece.total,
        dropped: piece.dropped.clone(),
        phase: piece.phase,
        log_open: piece.log_open,
        final_len: piece.final_len,
        ending: piece.ending.clone(),
        content: Content::Raw { base64: String::new() },
    })
}

/// The bytes from the cursor to the piece that were dropped.
fn dropped_from(piece: &RawOutput, cursor: u64) -> Vec<Range> {
    let between = |range: &Range| {
        let (start, end) = (range.start.max(cursor), range.end.min(piece.from));
        (start < end).then_some(Range { start, end })
    };
    piece.dropped.iter().filter_map(between).collect()
}
