//! Where a secret may have begun that is not complete.

use super::patterns::Patterns;

/// The first offset from which all bytes may be the beginning of a secret; their count if there is
/// none.
pub(super) fn begin(patterns: &Patterns, bytes: &[u8]) -> usize {
    // One byte less than a whole secret.
    let first = bytes.len().saturating_sub(patterns.longest() - 1);
    let begun = (first..bytes.len()).find(|start| patterns.is_begun_by(&bytes[*start..]));
    begun.unwrap_or(bytes.len())
}
