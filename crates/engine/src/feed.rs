//! The events of all processes of an engine, in one order.
//!
//! The events of a process follow its life: started, first output, timed out, ended, workspace
//! touched, forgotten. The feed keeps the newest events and reports a gap to a reader that asks for
//! older ones. It never waits for a reader. A process that an earlier engine started appears only
//! when it is forgotten.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use lastbyte_output::log::Extent;
use lastbyte_sys::registry::Header;
use tokio::sync::watch;

use crate::counts::Counts;
use crate::launch::{Spec, Touches};
use crate::process::ending::{Ending, Timeout};

/// Something that happened to a process.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// 1, 2, 3 and so on, without gaps.
    pub number: u64,
    pub at: SystemTime,
    pub spec: Arc<Spec>,
    pub kind: EventKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    /// It is running, and can be found by its id.
    Started,
    /// The first byte is in the log.
    FirstOutput,
    /// It has timed out, and is being stopped or keeps running.
    TimedOut { which: Timeout },
    /// Its last byte is in the log, and every reader sees it as ended.
    Ended(Arc<Ending>),
    /// It has ended and may have changed what its launch declared.
    WorkspaceTouched(Touches),
    /// It and its log are gone.
    Forgotten,
}

/// A range of events, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    pub events: Vec<Arc<Event>>,
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
    events: VecDeque<Arc<Event>>,
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
        let kept = watch::Sender::new(Kept { events: VecDeque::new(), newest });
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

    pub(crate) fn post(&self, spec: &Arc<Spec>, kind: EventKind) {
        // Count first, so that a reader that has seen the event finds it counted.
        self.shared.counts.count_event(&kind);
        self.shared.kept.send_modify(|kept| {
            kept.newest += 1;
            if let Some(Header { feed: [_, newest], .. }) = self.shared.header {
                newest.store(kept.newest, Ordering::SeqCst);
            }
            let (number, spec) = (kept.newest, Arc::clone(spec));
            kept.events.push_back(Arc::new(Event { number, at: SystemTime::now(), spec, kind }));
            if kept.events.len() > MOST {
                kept.events.pop_front();
            }
        });
    }
}

impl Reporter {
    pub(crate) fn new(feed: Feed, spec: Arc<Spec>, touches: Option<Touches>) -> Self {
        Self { feed, spec, touches }
    }

    pub(crate) fn report(&self, kind: EventKind) {
        self.feed.post(&self.spec, kind);
    }

    pub(crate) fn report_ending(&self, ending: &Arc<Ending>) {
        self.report(EventKind::Ended(Arc::clone(ending)));
        if let Some(touches) = &self.touches {
            self.report(EventKind::WorkspaceTouched(touches.clone()));
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
    use crate::{Id, Launch};

    fn feed_of(count: u64) -> Feed {
        let feed = Feed::new(Arc::default(), None);
        let spec = Spec::new(Id::fresh(), &Launch::shell(""), "/".into(), SystemTime::now());
        let spec = Arc::new(spec);
        (0..count).for_each(|_| feed.post(&spec, EventKind::Started));
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
