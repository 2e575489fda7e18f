//! How much of a log is kept: pure arithmetic over lengths.

use std::ops::Range;

/// Bytes are dropped in whole blocks, so that the file system can free them.
pub(super) const BLOCK: u64 = 4096;

/// How many bytes of output may be on disk, index included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    bytes: u64,
    head: u64,
}

/// A quota that is too small to keep both ends of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the quota must be at least {} KiB ({} bytes)", Quota::LEAST / 1024, Quota::LEAST)]
pub struct QuotaTooSmall {
    pub given: u64,
}

impl Quota {
    /// 128 KiB.
    pub const LEAST: u64 = 128 * 1024;
    /// 64 MiB.
    pub const DEFAULT: Self = Self { bytes: 64 << 20, head: 1 << 20 };
    /// 1 MiB of head and 1 MiB of tail: the quota of a running log when all logs together are too
    /// large.
    pub const SQUEEZED: Self = Self { bytes: 2 << 20, head: 1 << 20 };

    /// A quarter for the head, at most 1 MiB; the rest for the newest bytes.
    pub fn new(bytes: u64) -> Result<Self, QuotaTooSmall> {
        if bytes >= Self::LEAST {
            Ok(Self { bytes, head: (bytes / 4).min(1 << 20) })
        } else {
            Err(QuotaTooSmall { given: bytes })
        }
    }

    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// How many of them are for the oldest bytes.
    pub fn head(self) -> u64 {
        self.head
    }

    /// How much is dropped at once: rare enough to cost little, small enough to keep most.
    pub(super) fn step(self) -> u64 {
        (self.bytes / 16).clamp(4 * BLOCK, 4 << 20)
    }

    /// The range to drop of a region so that it fits: the old range, grown at its end but not past
    /// `limit`; `None` if it fits, or nothing more may be dropped. `index` is the size of the log's
    /// index on disk.
    pub(super) fn cut(
        self,
        region: &Range<u64>,
        limit: u64,
        gone: &Range<u64>,
        index: u64,
    ) -> Option<Range<u64>> {
        let data = (region.end - region.start) - (gone.end - gone.start);
        let kept = data + index;
        if kept <= self.bytes {
            return None;
        }
        // Bytes and their index share the quota in proportion to their sizes.
        let share = |bytes: u64| (u128::from(bytes) * u128::from(data) / u128::from(kept)) as u64;
        let head_end = region.start + share(self.head);
        let start = if gone.is_empty() { head_end.next_multiple_of(BLOCK) } else { gone.start };
        let excess = share(kept - (self.bytes - self.step()));
        let newest = region.end.saturating_sub(share(self.bytes / 4));
        let end = (start.max(gone.end) + excess).min(limit).min(newest);
        let end = end - end % BLOCK;
        (end > gone.end.max(start)).then_some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_fits_is_not_cut() {
        let quota = Quota::new(128 * 1024).expect("the least");
        assert_eq!(quota.cut(&(0..128 * 1024), 128 * 1024, &(0..0), 0), None);
        assert!(quota.cut(&(0..128 * 1024 + 1), 128 * 1024 + 1, &(0..0), 0).is_some());
    }

    #[test]
    fn too_small_a_quota_is_refused_with_its_size() {
        assert_eq!(Quota::new(1000), Err(QuotaTooSmall { given: 1000 }));
        let text = QuotaTooSmall { given: 1000 }.to_string();
        assert_eq!(text, "the quota must be at least 128 KiB (131072 bytes)");
    }

    proptest! {
        /// Whatever is appended, in whatever steps: head + dropped + tail = length, the head and
        /// the newest bytes stay, what is dropped only grows, and what is kept stays bounded.
        #[test]
        fn both_ends_stay_and_the_middle_only_grows(
            bytes in Quota::LEAST..1 << 22,
            from in 0u64..100_000,
            appends in prop::collection::vec(0u64..1 << 18, 1..200),
            index_share in 0u64..3,
        ) {
            let quota = Quota::new(bytes).expect("large enough");
            let (mut region, mut gone) = (from..from, 0..0);
            for append in appends {
                region.end += append;
                let index = (region.end - region.start - (gone.end - gone.start)) * index_share;
                if let Some(cut) = quota.cut(&region, region.end, &gone, index) {
                    prop_assert!(gone.is_empty() || cut.start == gone.start);
                    prop_assert!(cut.end > gone.end && cut.end <= region.end);
                    prop_assert!(cut.start.is_multiple_of(BLOCK) && cut.end.is_multiple_of(BLOCK));
                    prop_assert!(cut.start >= region.start + bytes.min(4 << 20) / 4 / (1 + index_share));
                    gone = cut;
                }
                let kept = (region.end - region.start) - (gone.end - gone.start);
                // An append is larger here than a step ever is; the next cut makes up for it.
                prop_assert!(kept * (1 + index_share) <= bytes + (1 << 18) * (1 + index_share));
                if !gone.is_empty() {
                    let newest = bytes / 4 / (1 + index_share);
                    prop_assert!(region.end - gone.end >= newest, "a tail worth having");
                }
            }
        }
    }
}
