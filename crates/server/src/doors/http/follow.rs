//! `GET …/follow`: the output as server-sent events.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use lastbyte_wire::{ErrorBody, follow_events as name};
use tokio::sync::OwnedSemaphorePermit;

use super::answer::{Answer, nothing};
use super::input::{self, Target};
use super::sse;
use crate::App;
use crate::verbs::follow::{Following, News, Next};

pub(super) async fn follow_output(
    State(app): State<App>,
    Target(process): Target,
    headers: HeaderMap,
    uri: Uri,
) -> Answer {
    let query = input::query(&uri)?;
    let permit = app.begin_wait()?;
    let following = Following::new(&process, &query, sse::last_event_id(&headers))?;
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
        News::Output(output) => sse::event(id, name::OUTPUT, output),
        News::Late(output) => sse::event(id, name::LATE, output),
        News::Dropped(dropped) => sse::event(id, name::DROPPED, dropped),
        News::Ending(ending) => sse::event(id, name::ENDING, ending),
    }
}
