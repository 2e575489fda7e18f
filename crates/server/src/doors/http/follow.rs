//! `GET …/follow`: the output as server-sent events.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use lastbyte_wire::{Bytes, ErrorBody, FollowDropped, FollowOutput, follow_events as name};
use tokio::sync::OwnedSemaphorePermit;

use super::answer::{Answer, nothing};
use super::input::{self, Target};
use super::sse;
use crate::verbs::follow::{Follower, Part, Place, Step, split};
use crate::{App, to_wire};

pub(super) async fn follow_output(
    State(app): State<App>,
    Target(process): Target,
    headers: HeaderMap,
    uri: Uri,
) -> Answer {
    let query = input::query(&uri)?;
    let permit = app.begin_wait()?;
    let follower = Follower::new(&process, &query, sse::last_event_id(&headers)?)?;
    if follower.is_over() {
        // The status that tells a page not to connect again.
        return nothing(StatusCode::NO_CONTENT);
    }
    Ok(sse::answer(Output { follower: Some(follower), _permit: permit }))
}

struct Output {
    /// `None` when the log could not be read.
    follower: Option<Follower>,
    _permit: OwnedSemaphorePermit,
}

impl sse::Events for Output {
    async fn next(&mut self) -> Option<String> {
        let follower = self.follower.as_mut()?;
        match follower.next().await {
            Ok(step) => step.map(|step| events(follower, step)),
            Err(error) => {
                self.follower = None;
                Some(sse::event(None, name::FAILED, &ErrorBody { error }))
            }
        }
    }
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
            let ending = to_wire::ending(&ending, &follower.process().spec().sandbox);
            sse::event(Some(&place), name::ENDING, &ending)
        }
    }
}

/// One event for the text and one for what is no text, if there is any.
fn output(follower: &Follower, part: &Part) -> String {
    let Place { ended, .. } = follower.place();
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
        let place = Place { cursor: range.end, ended };
        sse::event(Some(&place), if ended { name::LATE } else { name::OUTPUT }, &output)
    };
    pieces.into_iter().filter(|(range, _)| !range.is_empty()).map(event).collect()
}
