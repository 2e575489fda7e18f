//! Logs that were read a moment ago are still open: a client that polls reads the same one again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastbyte_output::log::Reader;

use crate::Id;

/// Two descriptors each at most.
const MOST: usize = 32;

/// The readers of one engine that were used last, the last one first.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    recent: Mutex<VecDeque<(Id, Arc<Reader>)>>,
}

impl Readers {
    /// A reader of this process's log, of which `log` is another.
    pub(crate) fn get(&self, id: Id, log: &Reader) -> Arc<Reader> {
        let mut recent = self.recent();
        let place = recent.iter().position(|(known, _)| *known == id);
        let found = place.and_then(|place| recent.remove(place));
        let (_, reader) = found.unwrap_or_else(|| (id, Arc::new(log.again())));
        recent.push_front((id, Arc::clone(&reader)));
        let oldest = if recent.len() > MOST { recent.pop_back() } else { None };
        drop(recent);
        drop(oldest); // closes its files, if nobody else reads them
        reader
    }

    /// Its files are removed, and nothing must keep their room from being free.
    pub(crate) fn forget(&self, id: Id) {
        self.recent().retain(|(known, _)| *known != id);
    }

    fn recent(&self) -> MutexGuard<'_, VecDeque<(Id, Arc<Reader>)>> {
        // Every change is complete in itself.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use lastbyte_output::log::{Place, Streams};

    use super::*;

    fn log() -> Reader {
        Reader::of_files(Place::new("/none".as_ref(), 1), Streams::One, 1)
    }

    #[test]
    fn the_same_log_is_not_opened_again_and_the_oldest_goes() {
        let (readers, log) = (Readers::default(), log());
        let get = |number: usize| readers.get(Id::from_number(number as u128), &log);
        let first = Arc::downgrade(&get(0));
        assert!(Arc::ptr_eq(&get(0), &first.upgrade().unwrap()));
        (1..MOST).for_each(|number| drop(get(number)));
        assert!(Arc::ptr_eq(&get(0), &first.upgrade().unwrap()), "there is room for it");
        (MOST..2 * MOST).for_each(|number| drop(get(number)));
        assert!(first.upgrade().is_none());
        assert_eq!(readers.recent().len(), MOST);
    }

    #[test]
    fn a_log_that_is_forgotten_is_closed() {
        let (readers, log) = (Readers::default(), log());
        let reader = Arc::downgrade(&readers.get(Id::from_number(1), &log));
        readers.forget(Id::from_number(2));
        assert!(reader.upgrade().is_some());
        readers.forget(Id::from_number(1));
        assert!(reader.upgrade().is_none());
    }
}
