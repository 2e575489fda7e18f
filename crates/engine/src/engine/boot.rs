//! Whether the machine went down since the last engine, which the files of logs must be read for.
//!
//! Neither journal nor logs are synced, so a file may be as long as it was and lack its last bytes. The
//! file `boot` has the id of the boot in which an engine last looked at all logs. It is not synced
//! either: after a power loss the id is another one, whatever is left of the file.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How long a kernel may take to write a file by itself: half a minute by default, some minutes on
/// battery.
const WRITTEN_WITHIN: Duration = Duration::from_secs(600);

/// Since when files may not have reached the disk; `None` if the machine did not go down. Must be
/// called before the journal is written.
pub(super) fn unsynced_since(state: &Path) -> Option<SystemTime> {
    let noted = fs::read_to_string(state.join("boot")).ok();
    if noted.is_some() && noted == super::gates::boot_id().ok() {
        return None;
    }
    // Shortly before it went down, unless nothing happened for a while.
    let journal = fs::metadata(state.join("journal")).and_then(|journal| journal.modified());
    Some(journal.ok()?.checked_sub(WRITTEN_WITHIN).unwrap_or(SystemTime::UNIX_EPOCH))
}

/// All logs have been looked at in this boot.
pub(super) fn note(state: &Path) {
    // Without it the next engine looks again.
    _ = super::gates::boot_id().and_then(|id| fs::write(state.join("boot"), id));
}
