//! Log files: how many are opened ahead, and what happens to those an earlier engine left behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lastbyte_output::log::{Place, Pool};
use lastbyte_sys::descriptor_limit;

use crate::journal::{Replayed, SetAside};
use crate::settings::History;

/// Enough for a few commands at once.
const MOST: u64 = 16;
/// One open file per 64 descriptors: commands need the rest.
const DESCRIPTORS_PER_FILE: u64 = 64;

/// An engine without a journal may run one silent command: it creates a file when there is output,
/// and keeps none.
pub(super) fn pool(folder: PathBuf, history: History, replayed: &Replayed) -> Pool {
    let size = match history {
        History::None => 0,
        History::Journal => most(descriptor_limit::own()),
    };
    Pool::new(folder, size, replayed.logs.keys().max().copied().unwrap_or(0))
}

fn most(descriptors: Option<u64>) -> usize {
    descriptors.map_or(MOST, |limit| (limit / DESCRIPTORS_PER_FILE).min(MOST)) as usize
}

/// Removes files that no process uses, and returns how many belonged to forgotten processes. A file
/// that no record names is set aside unless it is empty: the journal may have lost its record.
pub(super) fn clear(folder: &Path, replayed: &Replayed, aside: &mut SetAside) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let log = Place::number_of(&path);
        let named = log.and_then(|log| replayed.logs.get(&log));
        let process = named.and_then(|id| replayed.pasts.get(id));
        if process.is_some_and(|process| process.log() == log) {
            continue;
        }
        // What cannot be removed or moved now is for the next start to try.
        if is_empty(&path) {
            _ = fs::remove_file(&path);
        } else if named.is_some() {
            let is_removed = fs::remove_file(&path).is_ok();
            removed += usize::from(is_removed && process.is_none());
        } else {
            _ = aside.take(&path);
        }
    }
    Ok(removed)
}

fn is_empty(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Id;

    #[test]
    fn files_take_one_of_64_descriptors_and_no_more_than_are_of_use() {
        for (limit, want) in [(0, 0), (63, 0), (64, 1), (256, 4), (1023, 15), (1024, 16)] {
            assert_eq!(most(Some(limit)), want, "{limit}");
        }
        assert_eq!((most(Some(u64::MAX)), most(None)), (16, 16));
    }

    #[test]
    fn what_a_record_accounts_for_or_is_empty_is_removed_and_the_rest_is_set_aside() {
        let state = tempfile::tempdir().unwrap();
        let logs = state.path().join("logs");
        fs::create_dir(&logs).unwrap();
        for name in ["3.log", "3.index", "4.log", "x.log"] {
            fs::write(logs.join(name), name).unwrap();
        }
        for empty in ["5.log", "y"] {
            fs::write(logs.join(empty), "").unwrap();
        }
        let replayed = Replayed { logs: [(3, Id::fresh())].into(), ..Replayed::default() };
        let mut aside = SetAside::new(state.path());
        assert_eq!(clear(&logs, &replayed, &mut aside).unwrap(), 2);
        assert_eq!(fs::read_dir(&logs).unwrap().count(), 0);
        let (folder, files) = aside.found().unwrap();
        assert_eq!(files, 2);
        for name in ["4.log", "x.log"] {
            assert_eq!(fs::read(folder.join(name)).unwrap(), name.as_bytes());
        }
    }
}
