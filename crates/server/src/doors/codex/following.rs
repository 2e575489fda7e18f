//! The output of one command on its way to the client: pulled from the log by cursor.
//!
//! The log is pinned from its first byte until this has read it, so caps and streams are exact and a
//! slow client makes the command wait instead of losing anything.

use std::borrow::Cow;
use std::sync::Arc;

use lastbyte_engine::{Ending, LogReader, Pin, Process, Snapshot};
use lastbyte_output::log::{Piece, Run, Stream};
use tokio::task::coop::consume_budget;

use super::base64;
use super::capture::{Capture, Clipped, Text};
use super::envelope::{quoted, unix_ms};
use super::launching::Output;
use super::methods::Target;
use super::outbox::Outbox;

/// At most so many bytes of output are in one delta.
const DELTA_BYTES: usize = 64 * 1024;

/// Reads a log to its end and hands it on.
#[derive(Debug)]
pub(super) struct Following {
    process: Process,
    reader: LogReader,
    /// Holds the output back; `None` only if somebody else has taken it.
    pin: Option<Pin>,
    cursor: u64,
    /// Empty until there is output.
    buffer: Vec<u8>,
    captures: [Capture; 2],
    sink: Sink,
    lost: u64,
}

/// Where the bytes go.
#[derive(Debug)]
pub(super) enum Sink {
    Text([Text; 2]),
    Deltas(Deltas),
    /// The client did not want to hear of them.
    Nowhere,
}

/// Writes the notifications that carry output.
#[derive(Debug)]
pub(super) struct Deltas {
    outbox: Outbox,
    /// A notification up to the name of its stream.
    begin: String,
}

/// All there is to know once the output is over.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) ending: Arc<Ending>,
    pub(super) out: Capture,
    pub(super) err: Capture,
    pub(super) texts: [String; 2],
    /// Bytes that could not be read back, because the disk failed.
    pub(super) lost: u64,
}

impl Followed {
    /// For a command of whose output nothing can be told.
    pub(super) fn without_output(ending: Arc<Ending>) -> Self {
        let lost = ending.final_len;
        let [out, err] = [Capture::new(None), Capture::new(None)];
        Self { ending, out, err, texts: Default::default(), lost }
    }
}

const STREAMS: [Stream; 2] = [Stream::Out, Stream::Err];

impl Following {
    pub(super) fn new(process: &Process, output: Output, sink: Sink) -> Self {
        Self {
            process: process.clone(),
            reader: process.reader(),
            pin: process.pin(),
            cursor: 0,
            buffer: Vec::new(),
            captures: [Capture::new(output.cap), Capture::new(output.cap)],
            sink,
            lost: 0,
        }
    }

    pub(super) async fn until_ended(mut self) -> Followed {
        loop {
            let cursor = self.cursor;
            let news = |at: &Snapshot| at.output_len() > cursor || at.ending().is_some();
            let snapshot = self.process.wait_for(news).await;
            while self.cursor < snapshot.output_len() {
                self.step(&snapshot).await;
                // Files are always ready: without this nobody else on this thread would be.
                consume_budget().await;
            }
            if let Some(ending) = snapshot.ending() {
                return self.finish(Arc::clone(ending));
            }
        }
    }

    fn finish(self, ending: Arc<Ending>) -> Followed {
        let [out, err] = self.captures;
        let texts = match self.sink {
            Sink::Text(texts) => texts.map(Text::finish),
            Sink::Deltas(_) | Sink::Nowhere => Default::default(),
        };
        Followed { ending, out, err, texts, lost: self.lost }
    }

    async fn step(&mut self, snapshot: &Snapshot) {
        self.buffer.resize(DELTA_BYTES, 0);
        let end = snapshot.output_len();
        let most = usize::try_from(end - self.cursor).unwrap_or(DELTA_BYTES).min(DELTA_BYTES);
        let into = &mut self.buffer[..most];
        match self.reader.read_runs(snapshot, self.cursor, into) {
            Ok((Piece::Bytes(count), runs)) => {
                self.hand_on(&runs).await;
                self.cursor += count as u64;
            }
            Ok((Piece::Dropped(gone), _)) => self.skip(gone.end.min(end)),
            // The file is shorter than its log: somebody cut it.
            Ok((Piece::End, _)) => self.skip(end),
            // The command is not to blame: its end is told, and that output is missing.
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "output is lost");
                self.skip(end);
            }
        }
        self.pin.iter().for_each(|pin| pin.advance(self.cursor));
    }

    fn skip(&mut self, to: u64) {
        self.lost += to - self.cursor;
        self.cursor = to;
    }

    /// The order between the streams is not told: each gets what it has in one piece.
    async fn hand_on(&mut self, runs: &[Run]) {
        for (nth, stream) in STREAMS.into_iter().enumerate() {
            let bytes = of_stream(&self.buffer, self.cursor, runs, stream);
            let Some(clipped) = self.captures[nth].take(&bytes) else { continue };
            match &mut self.sink {
                Sink::Text(texts) => texts[nth].push(clipped.bytes),
                Sink::Deltas(deltas) => deltas.send(stream, clipped).await,
                Sink::Nowhere => {}
            }
        }
    }
}

/// The bytes of one stream, of a buffer that begins at `cursor`.
fn of_stream<'a>(buffer: &'a [u8], cursor: u64, runs: &[Run], stream: Stream) -> Cow<'a, [u8]> {
    // Runs lie within the buffer, so their distance from its beginning is small.
    let slice =
        |run: &Run| &buffer[(run.range.start - cursor) as usize..(run.range.end - cursor) as usize];
    let mut own = runs.iter().filter(|run| run.stream == stream);
    let mut bytes = Cow::Borrowed(own.next().map_or(&[][..], slice));
    for run in own {
        bytes.to_mut().extend_from_slice(slice(run));
    }
    bytes
}

impl Deltas {
    pub(super) fn new(outbox: Outbox, target: &Target) -> Self {
        let (family, id) = (target.family(), quoted(target.id()));
        let (method, member) = (family.output_delta(), family.id_member());
        let begin = format!(r#"{{"method":"{method}","params":{{"{member}":{id},"stream":""#);
        Self { outbox, begin }
    }

    /// Waits for room, and so for the client.
    async fn send(&self, stream: Stream, clipped: Clipped<'_>) {
        let stream = match stream {
            Stream::Out => "stdout",
            Stream::Err => "stderr",
        };
        let Clipped { bytes, cap_reached } = clipped;
        // A third more for base64, and the rest of the notification.
        let mut text = String::with_capacity(self.begin.len() + bytes.len() / 3 * 4 + 128);
        text.push_str(&self.begin);
        text.push_str(stream);
        text.push_str(r#"","deltaBase64":""#);
        base64::encode_to(bytes, &mut text);
        let now = unix_ms();
        text.push_str(&format!(r#"","capReached":{cap_reached}}},"emittedAtMs":{now}}}"#));
        let parcel = self.outbox.output_parcel(text).await;
        self.outbox.send(parcel);
    }
}
