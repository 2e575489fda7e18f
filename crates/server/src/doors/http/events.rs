//! `GET /v1/events`: the feed as server-sent events.

use axum::http::{HeaderMap, Uri};
use futures_util::stream;
use lastbyte_wire::{EventsQuery, Gap};

use super::answer::Answer;
use super::input::{self, Caller};
use super::sse;
use crate::verbs::events::{Next, Reading};

pub(super) async fn read_events(Caller(app): Caller, headers: HeaderMap, uri: Uri) -> Answer {
    let mut query: EventsQuery = input::query(&uri)?;
    let permit = app.begin_wait()?;
    if let Some(last) = sse::last_event_id(&headers)? {
        query.last_event_id = Some(last.to_owned());
    }
    let reading = Reading::new(&app, query)?;
    let place = reading.place();
    let events = stream::unfold((reading, permit), async |(mut reading, permit)| {
        let events = reading.next().await.iter().map(written).collect();
        Some((events, (reading, permit)))
    });
    Ok(sse::answer(place.as_deref(), events))
}

fn written(next: &Next) -> String {
    match next {
        Next::Gap => sse::event(None, "gap", &Gap {}),
        Next::Event { id, event } => sse::event(Some(id), event.event.name(), event),
    }
}
