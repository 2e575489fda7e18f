//! The ids of the last writes to a process: one that is repeated is not written again.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};

/// As many as Codex remembers.
const MOST: usize = 4096;

/// Remembers ids by two keyed hashes each, since an id may be long.
#[derive(Debug, Default)]
pub(super) struct WriteIds {
    keys: [RandomState; 2],
    known: HashSet<[u64; 2]>,
    /// Oldest first.
    order: VecDeque<[u64; 2]>,
}

impl WriteIds {
    pub(super) fn contains(&self, id: &str) -> bool {
        self.known.contains(&self.hash(id))
    }

    pub(super) fn insert(&mut self, id: &str) {
        let hash = self.hash(id);
        if !self.known.insert(hash) {
            return;
        }
        self.order.push_back(hash);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn hash(&self, id: &str) -> [u64; 2] {
        [self.keys[0].hash_one(id), self.keys[1].hash_one(id)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ids_are_known_and_older_ones_are_not() {
        let mut ids = WriteIds::default();
        (0..=MOST).for_each(|id| ids.insert(&id.to_string()));
        ids.insert("1");
        assert!(!ids.contains("0") && ids.contains("1") && ids.contains(&MOST.to_string()));
        assert_eq!((ids.known.len(), ids.order.len()), (MOST, MOST));
    }
}
