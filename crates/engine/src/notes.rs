//! What a process needs to go on after the death of its program, in its slot of the registry.
//!
//! What outlives a process is in the journal; what only a running one needs is here. Without a keeper
//! there is no slot, and nothing is noted.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lastbyte_output::log::{Progress, Quota};
use lastbyte_sys::registry::{NOTES, Place, Slot};
use lastbyte_sys::tag::Tag;
use lastbyte_sys::time::monotonic;
use lastbyte_sys::{Errno, Signal};
use tokio::time::Instant;

use crate::launch::{DrainRule, Launch, Limits, OnQuota, OnTimeout, Resource, Timeouts};
use crate::owner::Reason;
use crate::owner::stdin::EndOfFile;
use crate::process::ending::Timeout;
use crate::stop::{StopPolicy, Verb};

/// Which number of a slot is which note. New ones are added at the end: an older program may have
/// written the slot.
#[derive(Debug, Clone, Copy)]
enum Note {
    Started,
    LastOutput,
    Wall,
    Idle,
    OnTimeout,
    QuietWindow,
    DrainLimit,
    HoldersLimit,
    Quota,
    OnQuota,
    Floor,
    TagLocks,
    TagRss,
    Since,
    StopReason,
    StopSignal,
    StopDeadline,
    Escalated,
    Outlives,
    Stdin,
    LogLen,
    LogFailed,
    Typing,
    UncertainFrom,
    UncertainTo,
    Secret,
}

const _: () = assert!((Note::Secret as usize) < NOTES);

/// The notes of a process; `None` without a keeper.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes(Option<Arc<Slot>>);

/// What is noted of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) limits: Limits,
    pub(crate) drain: DrainRule,
    pub(crate) outlives_server: bool,
}

/// A stop that was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotedStop {
    pub(crate) reason: Reason,
    /// With the grace that is left.
    pub(crate) policy: StopPolicy,
}

/// Secret input that was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotedSecret {
    /// What is not written may be secret.
    pub(crate) has_input: bool,
    /// The terminal was told not to show what is typed.
    pub(crate) is_hidden: bool,
    /// The terminal may have a secret in a line that has not ended.
    pub(crate) has_line: bool,
}

/// The number of the first reason that is a limit.
const LIMIT: u64 = 16;

/// For a time that never comes.
const NEVER: u64 = u64::MAX;

impl Terms {
    pub(crate) fn new(launch: &Launch) -> Self {
        let Launch { drain, outlives_server, .. } = *launch;
        Self { limits: launch.limits(), drain, outlives_server }
    }
}

impl Notes {
    pub(crate) fn new(slot: Option<Arc<Slot>>) -> Self {
        Self(slot)
    }

    pub(crate) fn slot(&self) -> Option<&Arc<Slot>> {
        self.0.as_ref()
    }

    fn place(&self) -> Option<Place> {
        self.0.as_ref().map(|slot| slot.place())
    }

    fn set(&self, note: Note, value: u64) {
        if let Some(place) = self.place() {
            place.note(note as usize).store(value, Ordering::Release);
        }
    }

    fn get(&self, note: Note) -> u64 {
        self.place().map_or(0, |place| place.note(note as usize).load(Ordering::Acquire))
    }

    /// Before the leader is born.
    pub(crate) fn write(&self, terms: Terms, started: Instant, (tag, since): (Option<Tag>, u64)) {
        if self.0.is_none() {
            return;
        }
        let Terms { limits, drain, outlives_server } = terms;
        let Limits { timeouts, on_timeout, quota, on_quota } = limits;
        let DrainRule { quiet_window, limit, holders } = drain;
        self.set(Note::Started, monotonic_of(started));
        self.set(Note::LastOutput, monotonic_of(started));
        self.set(Note::Wall, timeouts.wall.map_or(NEVER, nanos));
        self.set(Note::Idle, timeouts.idle.map_or(NEVER, nanos));
        self.set(Note::OnTimeout, u64::from(on_timeout == OnTimeout::Background));
        self.set(Note::QuietWindow, nanos(quiet_window));
        self.set(Note::DrainLimit, nanos(limit));
        self.set(Note::HoldersLimit, nanos(holders));
        self.set(Note::Quota, quota.bytes());
        self.set(Note::OnQuota, u64::from(on_quota == OnQuota::Block));
        let [locks, rss] = tag.map_or([0, 0], Tag::numbers);
        self.set(Note::TagLocks, locks);
        self.set(Note::TagRss, rss);
        self.set(Note::Since, since);
        self.set(Note::Outlives, outlives_server.into());
    }

    pub(crate) fn terms(&self) -> Terms {
        let time = |note| Duration::from_nanos(self.get(note));
        let timeout = |note| Some(self.get(note)).filter(|nanos| *nanos != NEVER);
        let timeout = |note| timeout(note).map(Duration::from_nanos);
        Terms {
            limits: Limits {
                timeouts: Timeouts { wall: timeout(Note::Wall), idle: timeout(Note::Idle) },
                on_timeout: match self.get(Note::OnTimeout) {
                    0 => OnTimeout::Stop,
                    _ => OnTimeout::Background,
                },
                quota: Quota::new(self.get(Note::Quota)).unwrap_or(Quota::DEFAULT),
                on_quota: if self.get(Note::OnQuota) == 0 { OnQuota::Drop } else { OnQuota::Block },
            },
            drain: DrainRule {
                quiet_window: time(Note::QuietWindow),
                limit: time(Note::DrainLimit),
                holders: time(Note::HoldersLimit),
            },
            outlives_server: self.get(Note::Outlives) != 0,
        }
    }

    /// When it was started, and when its last output came.
    pub(crate) fn instants(&self) -> Option<(Instant, Instant)> {
        self.0.as_ref()?;
        Some((instant_of(self.get(Note::Started)), instant_of(self.get(Note::LastOutput))))
    }

    pub(crate) fn note_output(&self, at: Instant) {
        if self.0.is_some() {
            self.set(Note::LastOutput, monotonic_of(at));
        }
    }

    pub(crate) fn tag(&self) -> (Option<Tag>, u64) {
        let numbers = [self.get(Note::TagLocks), self.get(Note::TagRss)];
        (Tag::from_numbers(numbers), self.get(Note::Since))
    }

    /// A cursor that holds the output back.
    pub(crate) fn note_floor(&self, floor: Option<u64>) {
        self.set(Note::Floor, floor.unwrap_or(NEVER));
    }

    pub(crate) fn floor(&self) -> u64 {
        self.get(Note::Floor)
    }

    /// Before the first signal.
    pub(crate) fn note_stop(&self, reason: Reason, policy: StopPolicy) {
        if self.0.is_none() {
            return;
        }
        self.set(Note::StopSignal, u64::from(policy.signal.number().unsigned_abs()));
        self.set(Note::StopDeadline, nanos(monotonic()).saturating_add(nanos(policy.grace)));
        self.set(
            Note::StopReason,
            match reason {
                Reason::TimedOut(Timeout::Wall) => 1,
                Reason::TimedOut(Timeout::Idle) => 2,
                Reason::Stopped(Verb::Stop) => 3,
                Reason::Stopped(Verb::Close) => 4,
                Reason::Stopped(Verb::Disconnect) => 5,
                Reason::Limit(which) => LIMIT + which as u64,
            },
        );
    }

    pub(crate) fn stop(&self) -> Option<NotedStop> {
        let reason = match self.get(Note::StopReason) {
            1 => Reason::TimedOut(Timeout::Wall),
            2 => Reason::TimedOut(Timeout::Idle),
            3 => Reason::Stopped(Verb::Stop),
            4 => Reason::Stopped(Verb::Close),
            5 => Reason::Stopped(Verb::Disconnect),
            number => {
                let which = |which: &Resource| LIMIT + *which as u64 == number;
                Reason::Limit(Resource::ALL.into_iter().find(which)?)
            }
        };
        let left = self.get(Note::StopDeadline).saturating_sub(nanos(monotonic()));
        let signal = i32::try_from(self.get(Note::StopSignal)).ok();
        let signal = signal.and_then(|signal| Signal::from_number(signal).ok());
        let signal = signal.unwrap_or(Signal::TERM);
        let policy = StopPolicy { signal, grace: Duration::from_nanos(left) };
        Some(NotedStop { reason, policy })
    }

    pub(crate) fn note_escalation(&self) {
        self.set(Note::Escalated, 1);
    }

    pub(crate) fn escalated(&self) -> bool {
        self.get(Note::Escalated) != 0
    }

    /// Of a log that the disk did not take: the file does not show it.
    pub(crate) fn note_progress(&self, progress: Progress) {
        let Progress { len, final_len: _, failed } = progress;
        let errno = failed.map_or(0, Errno::raw_os_error);
        self.set(Note::LogLen, len);
        self.set(Note::LogFailed, errno.unsigned_abs().into());
    }

    pub(crate) fn progress(&self) -> Progress {
        let errno = i32::try_from(self.get(Note::LogFailed)).unwrap_or(0);
        let failed = (errno != 0).then(|| Errno::from_raw_os_error(errno));
        Progress { len: self.get(Note::LogLen), final_len: None, failed }
    }

    /// How the command learns that no more input comes.
    pub(crate) fn note_stdin(&self, end_of_file: EndOfFile) {
        self.set(
            Note::Stdin,
            match end_of_file {
                EndOfFile::Close => 0,
                EndOfFile::Type(byte) => 1 + u64::from(byte),
            },
        );
    }

    pub(crate) fn stdin(&self) -> EndOfFile {
        let byte = self.get(Note::Stdin).checked_sub(1).and_then(|byte| u8::try_from(byte).ok());
        byte.map_or(EndOfFile::Close, EndOfFile::Type)
    }

    /// The offset of the input that is about to be typed into a terminal, or that it was typed.
    pub(crate) fn note_typing(&self, from: Option<u64>) {
        self.set(Note::Typing, from.map_or(0, |from| from + 1));
    }

    /// The offset of what was about to be typed when the program of these notes died.
    pub(crate) fn typing(&self) -> Option<u64> {
        self.get(Note::Typing).checked_sub(1)
    }

    pub(crate) fn note_secret(&self, noted: NotedSecret) {
        let NotedSecret { has_input, is_hidden, has_line } = noted;
        let flags = [has_input, is_hidden, has_line].into_iter().enumerate();
        self.set(Note::Secret, flags.map(|(bit, is_set)| u64::from(is_set) << bit).sum());
    }

    pub(crate) fn secret(&self) -> NotedSecret {
        let noted = self.get(Note::Secret);
        NotedSecret {
            has_input: noted & 1 != 0,
            is_hidden: noted & 2 != 0,
            has_line: noted & 4 != 0,
        }
    }

    /// Nobody knows whether a terminal got this input, nor what lies between it and such input before.
    pub(crate) fn note_uncertain(&self, (from, to): (u64, u64)) {
        let first = self.uncertain().map_or(from, |(first, _)| first.min(from));
        self.set(Note::UncertainFrom, first);
        self.set(Note::UncertainTo, to);
    }

    /// From where to where the input may not have arrived.
    pub(crate) fn uncertain(&self) -> Option<(u64, u64)> {
        let to = self.get(Note::UncertainTo);
        (to != 0).then(|| (self.get(Note::UncertainFrom), to))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER)
}

fn monotonic_of(instant: Instant) -> u64 {
    nanos(monotonic().saturating_sub(instant.elapsed()))
}

/// The instant with this number on the monotonic clock, in nanoseconds.
pub(crate) fn instant_of(at: u64) -> Instant {
    let ago = monotonic().saturating_sub(Duration::from_nanos(at));
    let now = Instant::now();
    now.checked_sub(ago).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastbyte_sys::registry::Registry;

    #[test]
    fn terms_and_stops_read_back_as_they_were_noted() {
        let (registry, _file) = Registry::create().unwrap();
        let notes = Notes::new(registry.enter(1));
        let wall = Some(Duration::from_millis(1500));
        for (wall, on_quota) in [(wall, OnQuota::Block), (None, OnQuota::Drop)] {
            let terms = Terms {
                limits: Limits {
                    timeouts: Timeouts { wall, idle: None },
                    on_timeout: OnTimeout::Background,
                    quota: Quota::new(1 << 20).unwrap(),
                    on_quota,
                },
                drain: DrainRule::default(),
                outlives_server: wall.is_some(),
            };
            notes.write(terms, Instant::now(), (None, 5));
            assert_eq!(notes.terms(), terms);
        }
        assert_eq!(notes.stop(), None);
        let policy = StopPolicy { signal: Signal::INT, grace: Duration::from_secs(600) };
        notes.note_stop(Reason::Stopped(Verb::Stop), policy);
        let noted = notes.stop().unwrap();
        assert_eq!((noted.reason, noted.policy.signal), (Reason::Stopped(Verb::Stop), Signal::INT));
        let left = noted.policy.grace;
        for which in Resource::ALL {
            notes.note_stop(Reason::Limit(which), policy);
            assert_eq!(notes.stop().unwrap().reason, Reason::Limit(which));
        }
        assert!(left <= policy.grace && left > Duration::from_secs(500), "{left:?}");
    }
}
