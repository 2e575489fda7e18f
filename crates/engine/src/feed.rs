//! The events of all processes of an engine, in one order.
//!
//! The events of a process follow its life: started, first output, timed out, ended, workspace
//! touched, forgotten. The feed keeps the newest events and reports a gap to a reader that asks for
//! older ones. It never waits for a reader. A process that an earlier engine started appears only
//! when it is forgotten.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use lastbyte_output::log::Extent;
use lastbyte_sys::registry::Header;
use tokio::sync::watch;

use crate::Id;
use crate::counts::Counts;
use crate::launch::{Name, Session, Spec, Touches};
use crate::process::ending::{Ending, Timeout};

/// Something that happened to a process.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// 1, 2, 3 and so on, without gaps.
    pub number: u64,
    pub at: SystemTime,
    pub process: Arc<Subject>,
    pub kind: EventKind,
}

/// What readers know a process by. Events have a copy: they outlive the process, whose memory is to be
/// free once it is forgotten.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    pub id: Id,
    pub session: Option<Session>,
    pub name: Option<Name>,
    pub labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    /// It is running, and can be found by its id.
    Started(Arc<Spec>),
    /// The first byte is in the log.
    FirstOutput,
    /// It has timed out, and is being stopped or keeps running.
    TimedOut { which: Timeout },
    /// Its last byte is in the log, and every reader sees it as ended.
    Ended(Arc<Spec>, Arc<Ending>),
    /// It has ended and may have changed what its launch declared.
    WorkspaceTouched(Box<Touches>),
    /// It and its log are gone.
    Forgotten,
}

/// A range of events, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    pub events: Vec<Event>,
    /// Some events after the requested number are no longer kept.
    pub gap: bool,
    /// The number of the newest event, whether or not it is in this batch; 0 if there is none.
    pub newest: u64,
}

/// The events of an engine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Feed {
    shared: Arc<Shared>,
}

/// Posts the events of one process.
#[derive(Debug)]
pub(crate) struct Reporter {
    feed: Feed,
    spec: Arc<Spec>,
    process: Arc<Subject>,
    touches: Option<Touches>,
}

#[derive(Debug)]
struct Shared {
    epoch: u64,
    counts: Arc<Counts>,
    /// In a watch channel, so that the events and their notification cannot get out of step.
    kept: watch::Sender<Kept>,
    /// Where the number of the newest event outlives this program.
    header: Option<&'static Header>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Made for all it will ever have, so that no event needs memory of its own.
    events: VecDeque<Event>,
    newest: u64,
}

/// How many events are kept: hours of work, for a reader that was away.
const MOST: usize = 10_000;

impl Feed {
    /// With a header, the numbers go on where those of the worker before this one ended.
    pub(crate) fn new(counts: Arc<Counts>, header: Option<&'static Header>) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        let (epoch, newest) =
            header.map_or((now, 0), |Header { feed: [epoch, newest], .. }| {
                let before = epoch.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst);
                (before.err().unwrap_or(now), newest.load(Ordering::SeqCst))
            });
        let kept = watch::Sender::new(Kept { events: VecDeque::with_capacity(MOST), newest });
        Self { shared: Arc::new(Shared { epoch, counts, kept, header }) }
    }

    /// When this feed began, in microseconds of unix time. Numbers start at 1 in every engine, so
    /// together with this one a number identifies an event for ever.
    pub fn epoch(&self) -> u64 {
        self.shared.epoch
    }

    /// At most `most` events after `number`, oldest first.
    pub fn since(&self, number: u64, most: usize) -> Batch {
        let kept = self.shared.kept.borrow();
        let newest = kept.newest;
        let count = usize::try_from(newest.saturating_sub(number)).unwrap_or(usize::MAX);
        let skip = kept.events.len().saturating_sub(count);
        let events = kept.events.iter().skip(skip).take(most).cloned().collect();
        Batch { events, gap: count > kept.events.len(), newest }
    }

    /// Waits until there is an event after `number`. Cancel-safe.
    pub async fn past(&self, number: u64) {
        // The sender is alive, so this returns only for such an event.
        _ = self.shared.kept.subscribe().wait_for(|kept| kept.newest > number).await;
    }

    pub(crate) fn post(&self, process: Arc<Subject>, kind: EventKind) {
        // Count first, so that a reader that has seen the event finds it counted.
        self.shared.counts.count_event(&kind);
        self.shared.kept.send_modify(|kept| {
            kept.newest += 1;
            if let Some(Header { feed: [_, newest], .. }) = self.shared.header {
                newest.store(kept.newest, Ordering::SeqCst);
            }
            if kept.events.len() == MOST {
                kept.events.pop_front();
            }
            let (number, at) = (kept.newest, SystemTime::now());
            kept.events.push_back(Event { number, at, process, kind });
        });
    }
}

impl Subject {
    pub(crate) fn new(spec: &Spec) -> Self {
        let Spec { id, session, name, labels, .. } = spec;
        Self { id: *id, session: session.clone(), name: name.clone(), labels: labels.clone() }
    }
}

impl Reporter {
    pub(crate) fn new(feed: Feed, spec: Arc<Spec>, touches: Option<Touches>) -> Self {
        let process = Arc::new(Subject::new(&spec));
        Self { feed, spec, process, touches }
    }

    pub(crate) fn report(&self, kind: EventKind) {
        self.feed.post(Arc::clone(&self.process), kind);
    }

    pub(crate) fn report_start(&self) {
        self.report(EventKind::Started(Arc::clone(&self.spec)));
    }

    pub(crate) fn report_ending(&self, ending: &Arc<Ending>) {
        self.report(EventKind::Ended(Arc::clone(&self.spec), Arc::clone(ending)));
        if let Some(touches) = &self.touches {
            self.report(EventKind::WorkspaceTouched(Box::new(touches.clone())));
        }
    }

    /// Counts output up to this extent. This is not an event.
    pub(crate) fn count_output(&self, before: &Extent, after: &Extent) {
        self.feed.shared.counts.count_output(before, after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Launch;

    fn feed_of(count: u64) -> Feed {
        let feed = Feed::new(Arc::default(), None);
        let spec = Spec::new(Id::fresh(), &Launch::shell(""), "/".into(), SystemTime::now());
        let process = Arc::new(Subject::new(&spec));
        (0..count).for_each(|_| feed.post(Arc::clone(&process), EventKind::FirstOutput));
        feed
    }

    /// Checks the batch for a reader that has seen `number` and takes `most`.
    fn check(feed: &Feed, (number, most): (u64, usize), want: std::ops::Range<u64>, gap: bool) {
        let batch = feed.since(number, most);
        let numbers: Vec<u64> = batch.events.iter().map(|event| event.number).collect();
        assert_eq!(numbers, want.collect::<Vec<_>>(), "since {number}");
        assert_eq!(batch.gap, gap, "since {number}");
    }

    #[test]
    fn numbers_have_no_gaps_and_a_batch_goes_on_where_the_last_one_ended() {
        let feed = feed_of(5);
        check(&feed, (0, 3), 1..4, false);
        check(&feed, (3, 3), 4..6, false);
        check(&feed, (5, 3), 6..6, false);
        check(&feed, (9, 3), 6..6, false);
        assert_eq!(feed.since(0, 0).newest, 5);
        check(&feed_of(0), (0, 9), 1..1, false);
    }

    #[test]
    fn a_reader_that_comes_too_late_is_told_so() {
        let most = MOST as u64;
        let feed = feed_of(most + 2);
        check(&feed, (0, 2), 3..5, true);
        check(&feed, (1, 2), 3..5, true);
        check(&feed, (2, 2), 3..5, false);
        check(&feed, (most, 9), most + 1..most + 3, false);
    }
}
