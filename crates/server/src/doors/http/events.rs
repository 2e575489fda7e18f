//! `GET /v1/events`: the feed as server-sent events.

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use futures_util::stream;
use lastbyte_wire::{EventsQuery, Gap};

use super::answer::Answer;
use super::{input, sse};
use crate::App;
use crate::verbs::events::{EventFilter, Next, Reading};

pub(super) async fn read_events(State(app): State<App>, headers: HeaderMap, uri: Uri) -> Answer {
    let query: EventsQuery = input::query(&uri)?;
    let permit = app.begin_wait()?;
    let last = sse::last_event_id(&headers)?.or(query.last_event_id.as_deref());
    let only = EventFilter { session: query.session, chat: query.chat };
    let reading = Reading::new(&app, last, only)?;
    Ok(sse::answer(stream::unfold((reading, permit), async |(mut reading, permit)| {
        let events = reading.next().await.iter().map(written).collect();
        Some((events, (reading, permit)))
    })))
}

fn written(next: &Next) -> String {
    match next {
        Next::Gap => sse::event(None, "gap", &Gap {}),
        Next::Event { id, event } => sse::event(Some(id), event.event.name(), event),
    }
}
