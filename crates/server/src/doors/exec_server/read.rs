//! `process/read`: events by their numbers, as often as the client likes.

use std::sync::Arc;
use std::time::Duration;

use base64_simd::STANDARD;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::record::{Event, Events, Record};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReadParams {
    pub(super) process_id: String,
    after_seq: Option<u64>,
    max_bytes: Option<usize>,
    wait_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReadAnswer {
    chunks: Vec<ReadChunk>,
    next_seq: u64,
    exited: bool,
    exit_code: Option<i32>,
    closed: bool,
    /// Output is missing.
    failure: Option<String>,
    sandbox_denied: bool,
}

#[derive(Debug, Serialize)]
struct ReadChunk {
    seq: u64,
    stream: &'static str,
    /// In base64.
    chunk: String,
}

/// The most bytes of one answer. Codex reads without a limit of its own when it is back after a lost
/// connection.
const MOST_BYTES: usize = 32 << 20;

impl ReadParams {
    /// Waits as long as the request says, unless `enough` comes first, until there is an event that the
    /// client does not know. Cancel-safe.
    pub(super) async fn read(
        self,
        record: Arc<Record>,
        enough: impl Future<Output = ()>,
    ) -> Option<ReadAnswer> {
        let (after, wait) = (self.after_seq.unwrap_or(0), self.wait_ms.unwrap_or(0));
        let news = timeout(Duration::from_millis(wait), record.until_past(after));
        tokio::select! {
            biased;
            _ = news => {}
            () = enough => {}
        }
        // Megabytes would keep a thread of the runtime busy.
        spawn_blocking(move || self.answer(&record, after)).await.ok()
    }

    fn answer(&self, record: &Record, after: u64) -> ReadAnswer {
        let most = self.max_bytes.unwrap_or(usize::MAX).min(MOST_BYTES);
        let reader = record.process.reader();
        let (mut answer, last) = ReadAnswer::without_chunks(&record.events.borrow());
        let mut bytes = 0;
        for seq in after.saturating_add(1)..=last {
            let event = record.events.borrow().get(seq);
            let Some(Event::Output(chunk)) = event else { continue };
            let read = record.bytes(&reader, &chunk);
            bytes += read.len();
            if let Some(last) = answer.chunks.last().filter(|_| bytes > most) {
                answer.next_seq = last.seq + 1;
                break;
            }
            let stream = record.stream_name(chunk.stream);
            answer.chunks.push(ReadChunk { seq, stream, chunk: STANDARD.encode_to_string(&read) });
        }
        answer
    }
}

impl ReadAnswer {
    /// With the number of the last event.
    fn without_chunks(events: &Events) -> (Self, u64) {
        let (exited, last) = (events.exited(), events.last());
        let lost = events.lost;
        let answer = Self {
            chunks: Vec::new(),
            next_seq: last + 1,
            exited: exited.is_some(),
            exit_code: exited.map(|exited| exited.code),
            closed: events.is_closed(),
            failure: (lost > 0).then(|| format!("{lost} bytes of output were not kept")),
            sandbox_denied: exited.is_some_and(|exited| exited.sandbox_denied),
        };
        (answer, last)
    }
}
