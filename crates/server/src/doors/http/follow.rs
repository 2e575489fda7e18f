//! `GET …/follow`: the output as server-sent events.

use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::IntoResponse;
use futures_util::stream;
use lastbyte_wire::{Bytes, ErrorBody, FollowDropped, FollowOutput, follow_events as name};

use super::answer::Answer;
use super::input::{self, Caller, Target};
use super::sse;
use crate::to_wire;
use crate::verbs::follow::{FollowPlace, Follower, Part, Step};

pub(super) async fn follow_output(
    Caller(app): Caller,
    Target(process): Target,
    headers: HeaderMap,
    uri: Uri,
) -> Answer {
    let query = input::query(&uri)?;
    let permit = app.begin_wait()?;
    let follower = Follower::new(&process, &query, sse::last_event_id(&headers)?)?;
    if follower.is_over() {
        // The status that tells a page not to connect again.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    // Without a follower once the log could not be read.
    Ok(sse::answer(
        None,
        stream::unfold((Some(follower), permit), async |(follower, permit)| {
            let mut follower = follower?;
            match follower.next().await {
                Ok(step) => Some((events(&follower, step?), (Some(follower), permit))),
                Err(error) => {
                    let failed = sse::event(None, name::FAILED, &ErrorBody { error });
                    Some((failed, (None, permit)))
                }
            }
        }),
    ))
}

fn events(follower: &Follower, step: Step) -> String {
    let place = follower.place();
    match step {
        Step::Output(parts) => parts.iter().map(|part| output(follower, part)).collect(),
        Step::Dropped(range) => {
            let dropped = FollowDropped { range: to_wire::range(&range) };
            sse::event(Some(&place), name::DROPPED, &dropped)
        }
        Step::Ending(ending) => {
            let ending = to_wire::ending(&ending, &follower.process);
            sse::event(Some(&place), name::ENDING, &ending)
        }
    }
}

/// One event for the text and one for what is no text, if there is any.
fn output(follower: &Follower, part: &Part) -> String {
    let FollowPlace { ended, .. } = follower.place();
    let (text, binary) = split(follower.bytes(&part.range));
    let middle = part.range.start + text.len() as u64;
    let pieces = [
        (part.range.start..middle, Bytes::Text(text.to_owned())),
        (middle..part.range.end, Bytes::Base64(base64_simd::STANDARD.encode_to_string(binary))),
    ];
    let event = |(range, content): (std::ops::Range<u64>, Bytes)| {
        let output = FollowOutput {
            range: to_wire::range(&range),
            stream: part.stream.map(to_wire::stream),
            at_unix_ns: part.at_ms.map(to_wire::ms_as_ns),
            content,
        };
        let place = FollowPlace { cursor: range.end, ended };
        sse::event(Some(&place), if ended { name::LATE } else { name::OUTPUT }, &output)
    };
    pieces.into_iter().filter(|(range, _)| !range.is_empty()).map(event).collect()
}

/// The text that the bytes begin with, and the rest. What follows a bad byte is not looked at, so
/// that there are at most two pieces, however text and other bytes are mixed.
fn split(bytes: &[u8]) -> (&str, &[u8]) {
    let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    (text, &bytes[text.len()..])
}

#[cfg(test)]
mod tests {
    use lastbyte_output::decode::unfinished;
    use proptest::prelude::*;

    use super::*;

    /// What may come behind the last byte.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum After {
        More,
        Nothing,
    }

    fn passed_on(bytes: &[u8], after: After) -> (&str, &[u8]) {
        let held_back = if after == After::More { unfinished(bytes) } else { 0 };
        split(&bytes[..bytes.len() - held_back])
    }

    fn check(bytes: &[u8], after: After, want: (&str, &[u8])) {
        assert_eq!(passed_on(bytes, after), want, "{bytes:x?} {after:?}");
    }

    #[test]
    fn a_character_is_held_back_until_its_end_can_be_there() {
        check("é".as_bytes(), After::More, ("é", b""));
        check(b"a\xC3", After::More, ("a", b""));
        check(b"\xC3", After::More, ("", b""));
        check(b"a\xC3", After::Nothing, ("a", b"\xC3"));
    }

    #[test]
    fn a_bad_byte_loses_nothing() {
        check(b"a\xFFb", After::More, ("a", b"\xFFb"));
        check(b"\xFF\xC3", After::More, ("", b"\xFF"));
        check(b"", After::Nothing, ("", b""));
    }

    proptest! {
        #[test]
        fn bytes_in_any_pieces_come_out_as_they_were(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            size in 4usize..9,
        ) {
            let mut out = Vec::new();
            while out.len() < bytes.len() {
                let end = bytes.len().min(out.len() + size);
                let after = if end < bytes.len() { After::More } else { After::Nothing };
                let (text, rest) = passed_on(&bytes[out.len()..end], after);
                prop_assert!(text.len() + rest.len() > 0, "it goes on");
                out.extend_from_slice(text.as_bytes());
                out.extend_from_slice(rest);
            }
            prop_assert_eq!(out, bytes);
        }
    }
}
