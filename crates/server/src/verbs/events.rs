//! The feed of what happens to all processes.

use lastbyte_engine::{Event, EventKind, Feed, Session};
use lastbyte_wire::{self as wire, Error, EventsQuery};

use crate::{App, from_wire, to_wire};

/// A reader of the feed, at some event of it.
#[derive(Debug)]
pub struct Reading {
    feed: Feed,
    /// The number of the event that was seen last.
    seen: u64,
    gap: bool,
    only: EventsQuery,
    within: Option<Session>,
}

/// What a reader gets.
#[derive(Debug)]
pub enum Next {
    /// Events are missing before what comes now.
    Gap,
    Event {
        id: String,
        event: Box<wire::Event>,
    },
}

/// How many are taken from the feed at once.
const BATCH: usize = 64;

impl Reading {
    /// Behind the event with this id, which an earlier reading gave; without one, behind the
    /// newest. An id of an earlier run of the server begins at the oldest, with a gap.
    pub fn new(app: &App, only: EventsQuery) -> Result<Self, Error> {
        let feed = app.engine.feed();
        let (seen, gap) = match only.last_event_id.as_deref().map(parse).transpose()? {
            Some((epoch, number)) if epoch == feed.epoch() => {
                if number > feed.since(u64::MAX, 0).newest {
                    return Err(from_wire::invalid(format!(
                        "invalid event id: there is no event {number} yet"
                    )));
                }
                (number, false)
            }
            Some(_) => (0, true),
            None => (feed.since(u64::MAX, 0).newest, false),
        };
        Ok(Self { feed, seen, gap, only, within: app.session().cloned() })
    }

    /// The id of the event before the next one; `None` if a gap has to be told first.
    pub fn place(&self) -> Option<String> {
        (!self.gap).then(|| self.id(self.seen))
    }

    /// Waits until something comes.
    pub async fn next(&mut self) -> Vec<Next> {
        loop {
            let gap = std::mem::take(&mut self.gap);
            if !gap {
                self.feed.past(self.seen).await;
            }
            let batch = self.feed.since(self.seen, BATCH);
            let gap = (gap || batch.gap).then_some(Next::Gap);
            // A worker that has taken over knows the number of the newest event, but keeps none.
            self.seen = batch.events.last().map_or(batch.newest, |last| last.number);
            let wanted = batch.events.iter().filter(|event| self.takes(event));
            let next: Vec<Next> =
                gap.into_iter().chain(wanted.map(|event| self.told(event))).collect();
            if !next.is_empty() {
                return next;
            }
        }
    }

    /// The bound comes first: no query widens it.
    fn takes(&self, event: &Event) -> bool {
        let is_own = |own: &Session| event.process.session.as_ref() == Some(own);
        self.within.as_ref().is_none_or(is_own) && takes(&self.only, event)
    }

    fn told(&self, event: &Event) -> Next {
        Next::Event { id: self.id(event.number), event: Box::new(to_wire::event(event)) }
    }

    fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.feed.epoch())
    }
}

fn takes(query: &EventsQuery, event: &Event) -> bool {
    let session = event.process.session.as_ref().map(|session| &session.0);
    let names_chat = |chat: &String| match &event.kind {
        EventKind::WorkspaceTouched(touches) => {
            touches.sessions.iter().any(|session| session.0 == *chat)
        }
        EventKind::Started(_)
        | EventKind::FirstOutput
        | EventKind::TimedOut { .. }
        | EventKind::Ended(..)
        | EventKind::Forgotten => session == Some(chat),
    };
    query.session.as_ref().is_none_or(|wanted| session == Some(wanted))
        && query.chat.as_ref().is_none_or(names_chat)
}

fn parse(id: &str) -> Result<(u64, u64), Error> {
    let parts = id
        .split_once('-')
        .and_then(|(epoch, number)| Some((epoch.parse().ok()?, number.parse().ok()?)));
    parts.ok_or_else(|| from_wire::invalid(format!("invalid event id {id:?}")))
}
