//! Whom the kernel kills first when memory runs out: `oom_score_adj`.

use std::fs::{self, File};
use std::io::{self, Read, Write};

use rustix::process::getpid;

use crate::procfs::{Stat, pids, read_stat};

/// The highest value that the kernel takes.
const MOST: i32 = 1000;

/// That of this program: from -1000 (never killed) to 1000 (killed first).
pub fn own() -> io::Result<i32> {
    let text = fs::read_to_string("/proc/self/oom_score_adj")?;
    text.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Changes that of this program. Only root may make it lower.
pub fn set_own(score: i32) -> io::Result<()> {
    fs::write("/proc/self/oom_score_adj", score.to_string())
}

/// Lets the leader of a session and everything below it be killed before this program, by this
/// much. What has a higher score keeps it. Without effect on a process that is gone.
pub fn prefer(leader: i32, by: i32) -> io::Result<()> {
    let score = (own()? + by).min(MOST);
    raise(leader, score, &|stat| stat.session == leader);
    Ok(())
}

fn raise(pid: i32, score: i32, is_meant: &dyn Fn(&Stat) -> bool) {
    let path = format!("/proc/{pid}/oom_score_adj");
    let Ok(mut file) = File::options().read(true).write(true).open(path) else { return };
    // Opened first, verified second: so the file is of the process that is meant, and not of another
    // that has its number by now.
    if pid == getpid().as_raw_nonzero().get() || !read_stat(pid).is_ok_and(|stat| is_meant(&stat)) {
        return;
    }
    let mut text = String::new();
    let is_lower = file.read_to_string(&mut text).is_ok()
        && text.trim().parse::<i32>().is_ok_and(|found| found < score);
    if is_lower {
        // A sandbox may forbid it, and another user's process does.
        _ = file.write_all(score.to_string().as_bytes());
    }
    // Only what was forked before has an earlier score; what is forked from now on inherits this.
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    for child in pids(&children.unwrap_or_default()) {
        raise(child, score, &|stat| stat.parent == pid);
    }
}
