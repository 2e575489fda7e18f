//! The output of one command on its way from the log to the client.
//!
//! The log is pinned from its first byte until the client was sent it, so caps and streams are exact
//! and a slow client makes the command wait instead of losing anything.

use std::borrow::Cow;
use std::sync::Arc;

use base64_simd::STANDARD;
use lastbyte_engine::{Ending, Hold, Process};
use lastbyte_output::log::Stream;
use tokio::task::coop::consume_budget;

use super::jsonrpc::unix_ms;
use super::methods::{Names, Target};
use crate::doors::rpc::send_queue::SendQueue;
use crate::doors::rpc::to_json;
use crate::verbs::follow::{Follower, Part, Step};

/// Passes on the output of one command.
#[derive(Debug)]
pub(super) struct Forwarder {
    follower: Follower,
    /// Keeps output that was not sent yet; `None` only if another reader has pinned the log.
    hold: Option<Hold>,
    captures: [Capture; 2],
    sink: Sink,
    lost: u64,
}

/// Where the bytes go.
#[derive(Debug)]
pub(super) enum Sink {
    /// To the result.
    Result,
    Deltas(Deltas),
    /// The client opted out of the notifications.
    Nowhere,
}

/// Sends the notifications that carry output.
#[derive(Debug)]
pub(super) struct Deltas {
    send_queue: SendQueue,
    /// A notification up to the name of its stream.
    begin: String,
}

/// What is known when the output has ended.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) ending: Arc<Ending>,
    /// Of standard output and standard error.
    pub(super) captures: [Capture; 2],
    /// Bytes that could not be read back, because the disk failed.
    pub(super) lost: u64,
}

impl Collected {
    /// For a command whose output is lost.
    pub(super) fn without_output(ending: Arc<Ending>) -> Self {
        let lost = ending.final_len;
        Self { ending, captures: Default::default(), lost }
    }
}

const STREAMS: [Stream; 2] = [Stream::Out, Stream::Err];

impl Forwarder {
    pub(super) fn new(process: &Process, cap: Option<u64>, sink: Sink) -> Box<Self> {
        Box::new(Self {
            follower: Follower::from_start(process),
            hold: process.hold(),
            captures: [Capture::new(cap), Capture::new(cap)],
            sink,
            lost: 0,
        })
    }

    /// Boxed: a future reserves space for its arguments twice, before and after it begins.
    pub(super) async fn until_ended(mut self: Box<Self>) -> Collected {
        loop {
            match self.follower.next().await {
                Ok(Some(Step::Output(parts))) => self.pass_on(&parts).await,
                Ok(Some(Step::Dropped(range))) => self.lost += range.end - range.start,
                Ok(Some(Step::Ending(_)) | None) => break,
                // The command is not to blame: its ending is told, without that output.
                Err(error) => {
                    tracing::warn!(%error, "output is lost");
                    let range = self.follower.skip_unread();
                    self.lost += range.end - range.start;
                }
            }
            self.hold.iter().for_each(|hold| hold.advance(self.follower.place().cursor));
            // Files are always ready: without this, no other task of this thread would run.
            consume_budget().await;
        }
        let ending = self.follower.process.ended().await;
        let Self { captures, lost, .. } = *self;
        Collected { ending, captures, lost }
    }

    /// The order between the streams is undefined: the bytes of each are passed on in one piece.
    async fn pass_on(&mut self, parts: &[Part]) {
        for (nth, stream) in STREAMS.into_iter().enumerate() {
            let bytes = bytes_of(stream, parts, &self.follower);
            let capture = &mut self.captures[nth];
            let Some(bytes) = capture.take(&bytes) else { continue };
            match &self.sink {
                Sink::Result => capture.kept.extend_from_slice(bytes),
                Sink::Deltas(deltas) => deltas.send(stream, bytes, capture.cap_reached()).await,
                Sink::Nowhere => {}
            }
        }
    }
}

fn bytes_of<'a>(stream: Stream, parts: &[Part], follower: &'a Follower) -> Cow<'a, [u8]> {
    let own = parts.iter().filter(|part| part.stream == Some(stream));
    let mut own = own.map(|part| follower.bytes(&part.range));
    let mut bytes = Cow::Borrowed(own.next().unwrap_or_default());
    own.for_each(|more| bytes.to_mut().extend_from_slice(more));
    bytes
}

impl Deltas {
    pub(super) fn new(send_queue: SendQueue, target: &Target) -> Self {
        let Names { output_delta: method, id_member, .. } = target.api.names();
        let id = to_json(target.id.as_deref().unwrap_or_default());
        let begin = format!(r#"{{"method":"{method}","params":{{"{id_member}":{id},"stream":""#);
        Self { send_queue, begin }
    }

    /// Waits for space, and so for the client.
    async fn send(&self, stream: Stream, bytes: &[u8], cap_reached: bool) {
        let stream = match stream {
            Stream::Out => "stdout",
            Stream::Err => "stderr",
        };
        // A third more for base64, and the rest of the notification.
        let mut text = String::with_capacity(self.begin.len() + bytes.len() / 3 * 4 + 128);
        text.push_str(&self.begin);
        text.push_str(stream);
        text.push_str(r#"","deltaBase64":""#);
        STANDARD.encode_append(bytes, &mut text);
        let now = unix_ms();
        text.push_str(&format!(r#"","capReached":{cap_reached}}},"emittedAtMs":{now}}}"#));
        let message = self.send_queue.output_message(text).await;
        self.send_queue.send(message);
    }
}

/// Counts the bytes of one stream and passes on as many as its cap allows.
#[derive(Debug, Default)]
pub(super) struct Capture {
    cap: Option<u64>,
    /// Everything there was, passed on or not.
    pub(super) total: u64,
    given: u64,
    /// For the result.
    kept: Vec<u8>,
}

impl Capture {
    pub(super) fn new(cap: Option<u64>) -> Self {
        Self { cap, ..Self::default() }
    }

    /// The part of these bytes that the client gets; `None` if it gets no message.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let is_over = self.cap_reached() || bytes.is_empty();
        self.total += bytes.len() as u64;
        if is_over {
            return None;
        }
        let left = self.cap.map_or(u64::MAX, |cap| cap - self.given);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        self.given += count as u64;
        Some(&bytes[..count])
    }

    /// What was kept. Invalid UTF-8 affects only the bytes that are invalid.
    pub(super) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.kept)
    }

    /// The client got exactly the cap, and nothing follows. A cap of 0 is reached with the first byte.
    pub(super) fn cap_reached(&self) -> bool {
        self.total > 0 && self.cap == Some(self.given)
    }

    /// Something was not passed on.
    pub(super) fn truncated(&self) -> bool {
        self.total > self.given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(cap: Option<u64>, chunks: &[&str]) -> Vec<(String, bool)> {
        let mut capture = Capture::new(cap);
        let taken = chunks.iter().filter_map(|chunk| {
            let bytes = capture.take(chunk.as_bytes())?;
            Some((String::from_utf8(bytes.to_vec()).unwrap(), capture.cap_reached()))
        });
        taken.collect()
    }

    #[test]
    fn the_cap_is_told_where_it_is_met_and_nothing_follows() {
        let abc = |cap_reached| vec![("abc".to_owned(), cap_reached)];
        assert_eq!(pieces(Some(3), &["abcdef", "g"]), abc(true));
        assert_eq!(pieces(Some(3), &["abc"]), abc(true));
        assert_eq!(pieces(Some(4), &["abc"]), abc(false));
        assert_eq!(pieces(None, &["abc"]), abc(false));
        let split = pieces(Some(3), &["ab", "cd", "ef"]);
        assert_eq!(split, [("ab".to_owned(), false), ("c".to_owned(), true)]);
    }

    #[test]
    fn a_cap_of_nothing_is_met_by_the_first_byte() {
        assert_eq!(pieces(Some(0), &[]), []);
        assert_eq!(pieces(Some(0), &["a", "b"]), [(String::new(), true)]);
    }

    #[test]
    fn what_was_not_passed_on_is_counted() {
        let mut capture = Capture::new(Some(3));
        capture.take(b"abc");
        assert!(capture.cap_reached() && !capture.truncated());
        capture.take(b"de");
        assert!(capture.truncated());
        assert_eq!(capture.total, 5);
    }

    #[test]
    fn a_character_cut_by_the_cap_affects_only_itself() {
        let kept = "h\u{e9}llo \u{65e5}".as_bytes()[..8].to_vec();
        assert_eq!(Capture { kept, ..Capture::default() }.text(), "h\u{e9}llo \u{fffd}");
    }
}
