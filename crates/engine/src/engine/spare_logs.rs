//! How many files are made ahead of the logs that they become.

use std::path::PathBuf;
use std::sync::Arc;

use lastbyte_output::log::Spares;
use lastbyte_sys::probe::descriptor_limit;

/// What a few commands at once need.
const MOST: u64 = 16;
/// Each is held open, and commands need descriptors more: of so many, one.
const OF_DESCRIPTORS: u64 = 64;

/// None where descriptors are too few for any.
pub(super) fn spare_logs(folder: PathBuf) -> Option<Arc<Spares>> {
    match most(descriptor_limit()) {
        0 => None,
        most => Some(Arc::new(Spares::new(folder, most))),
    }
}

fn most(descriptors: Option<u64>) -> usize {
    descriptors.map_or(MOST, |limit| (limit / OF_DESCRIPTORS).min(MOST)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spares_take_one_of_64_descriptors_and_no_more_than_are_of_use() {
        for (limit, want) in [(0, 0), (63, 0), (64, 1), (256, 4), (1023, 15), (1024, 16)] {
            assert_eq!(most(Some(limit)), want, "{limit}");
        }
        assert_eq!((most(Some(u64::MAX)), most(None)), (16, 16));
    }
}
