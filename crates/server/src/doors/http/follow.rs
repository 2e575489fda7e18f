//! `GET …/follow`: the output as server-sent events.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use lastbyte_wire::{Bytes, ErrorBody, FollowDropped, FollowOutput, follow_events as name};
use tokio::sync::OwnedSemaphorePermit;

use super::answer::{Answer, nothing};
use super::input::{self, Target};
use super::sse;
use crate::verbs::follow::{Content, Following, News, Next, Piece};
use crate::{App, to_wire};

pub(super) async fn follow_output(
    State(app): State<App>,
    Target(process): Target,
    headers: HeaderMap,
    uri: Uri,
) -> Answer {
    let query = input::query(&uri)?;
    let permit = app.begin_wait()?;
    let following = Following::new(&process, &query, sse::last_event_id(&headers)?)?;
    if following.is_over() {
        // The status that tells a page not to connect again.
        return nothing(StatusCode::NO_CONTENT);
    }
    Ok(sse::answer(Output { following: Some(following), _permit: permit }))
}

struct Output {
    /// `None` when the log could not be read.
    following: Option<Following>,
    _permit: OwnedSemaphorePermit,
}

impl sse::Events for Output {
    async fn next(&mut self) -> Option<String> {
        match self.following.as_mut()?.next().await {
            Ok(next) if next.is_empty() => None,
            Ok(next) => Some(next.iter().map(written).collect()),
            Err(error) => {
                self.following = None;
                Some(sse::event(None, name::FAILED, &ErrorBody { error }))
            }
        }
    }
}

fn written(next: &Next) -> String {
    let id = Some(&next.place as _);
    match &next.news {
        News::Output(piece) => sse::event(id, name::OUTPUT, &in_words(piece)),
        News::Late(piece) => sse::event(id, name::LATE, &in_words(piece)),
        News::Dropped(range) => {
            sse::event(id, name::DROPPED, &FollowDropped { range: to_wire::range(range) })
        }
        News::Ending(ending) => sse::event(id, name::ENDING, ending),
    }
}

fn in_words(piece: &Piece) -> FollowOutput {
    FollowOutput {
        range: to_wire::range(&piece.range),
        stream: piece.stream.map(to_wire::stream),
        at_unix_ns: piece.at_ms.map(to_wire::ms_as_ns),
        content: match &piece.content {
            Content::Text(text) => Bytes::Text(text.clone()),
            Content::Binary(bytes) => Bytes::Base64(base64_simd::STANDARD.encode_to_string(bytes)),
        },
    }
}
