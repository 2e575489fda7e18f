//! What a process uses right now, from `/proc`.

use std::fs;
use std::time::Duration;

use crate::procfs::words;

/// The memory of this process in bytes that no file on disk has: of its own, and shared with others.
/// Pages that a fork shares are counted for each process that has them. `None` if it is gone.
pub fn resident(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    // A process that is exiting has none of these lines.
    Some(kilobytes(&status, "RssAnon:") + kilobytes(&status, "RssShmem:"))
}

/// As [`resident`], but each page is divided by the number of processes that have it, so that the sum of
/// a tree is what it uses. Takes the kernel time for each page. Where it may not be read, as of a setuid
/// program, the same as [`resident`].
pub fn share_of_memory(pid: i32) -> Option<u64> {
    let Ok(rollup) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else {
        return resident(pid);
    };
    Some(kilobytes(&rollup, "Pss_Anon:") + kilobytes(&rollup, "Pss_Shmem:"))
}

/// The processor time of this process and of the children it has waited for. `None` if it is gone.
pub fn cpu_time(pid: i32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    // Fields 14 to 17, counted from 1; the first of these is field 3.
    let times = fields.split_ascii_whitespace().skip(11).take(4);
    let ticks: u64 = times.filter_map(|time| time.parse::<u64>().ok()).sum();
    let second = rustix::param::clock_ticks_per_second();
    Some(Duration::from_nanos(ticks.saturating_mul(1_000_000_000 / second)))
}

fn kilobytes(text: &str, name: &str) -> u64 {
    let number = words(text, name).next().and_then(|number| number.parse::<u64>().ok());
    number.unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;
    use std::process;

    #[test]
    fn memory_that_is_written_is_counted() {
        const SIZE: u64 = 64 << 20;
        let own = process::id().cast_signed();
        let before = (resident(own).unwrap(), share_of_memory(own).unwrap());
        let written = black_box(vec![1u8; SIZE as usize]);
        let after = (resident(own).unwrap(), share_of_memory(own).unwrap());
        drop(written);
        for (before, after) in [(before.0, after.0), (before.1, after.1)] {
            assert!(after - before > SIZE * 9 / 10, "{before} to {after}");
        }
    }

    #[test]
    fn processor_time_is_that_of_the_kernel() {
        let own = process::id().cast_signed();
        let used = || {
            let usage = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
            Duration::try_from(usage).unwrap()
        };
        while used() < Duration::from_millis(100) {
            black_box((0..100_000u64).sum::<u64>());
        }
        let (told, known) = (cpu_time(own).unwrap(), used());
        assert!(
            told + Duration::from_millis(30) > Duration::from_millis(100),
            "{told:?} of {known:?}"
        );
        assert!(told < known + Duration::from_millis(30), "{told:?} of {known:?}");
    }

    #[test]
    fn nothing_is_told_of_a_process_that_is_gone() {
        let nobody = i32::MAX;
        assert_eq!((resident(nobody), share_of_memory(nobody)), (None, None));
        assert_eq!(cpu_time(nobody), None);
    }
}
