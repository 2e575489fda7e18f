//! The resources this program itself uses.

use std::fs;
use std::io;
use std::time::Duration;

use crate::child::own_usage;
use crate::descriptor_limit;
use crate::procfs::words;

/// Resource usage at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnProgram {
    /// User and kernel time of all threads since the program started.
    pub processor_time: Duration,
    pub threads: u64,
    pub virtual_bytes: u64,
    pub resident_bytes: u64,
    pub open_descriptors: u64,
    /// The limit on open descriptors; `None` if unlimited.
    pub most_descriptors: Option<u64>,
}

impl OwnProgram {
    /// Takes time proportional to the number of open descriptors.
    pub fn read() -> io::Result<Self> {
        let status = fs::read_to_string("/proc/self/status")?;
        let missing = || io::Error::from(io::ErrorKind::InvalidData);
        let kib = |name| field(&status, name).map(|kib| kib * 1024).ok_or_else(missing);
        let usage = own_usage();
        Ok(Self {
            processor_time: usage.user + usage.system,
            threads: field(&status, "Threads:").ok_or_else(missing)?,
            virtual_bytes: kib("VmSize:")?,
            resident_bytes: kib("VmRSS:")?,
            // One of them belongs to this directory listing.
            open_descriptors: fs::read_dir("/proc/self/fd")?.count().saturating_sub(1) as u64,
            most_descriptors: descriptor_limit::own(),
        })
    }

    /// The resident memory; `None` without `/proc`.
    pub fn resident_bytes() -> Option<u64> {
        field(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:").map(|kib| kib * 1024)
    }
}

/// The number after this field name.
fn field(status: &str, name: &str) -> Option<u64> {
    words(status, name).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_the_number_behind_its_name() {
        let status = "Name:\tVmRSS: 1\nVmSize:\t   20 kB\nThreads:\t3\n";
        assert_eq!(field(status, "VmSize:"), Some(20));
        assert_eq!(field(status, "Threads:"), Some(3));
        assert_eq!((field(status, "VmRSS:"), field(status, "Name:")), (None, None));
    }

    #[test]
    fn what_this_program_opens_is_seen() {
        let before = OwnProgram::read().unwrap();
        let open: Vec<_> = (0..200).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        let after = OwnProgram::read().unwrap();
        // Tests that run in parallel also open and close files, but never this many.
        assert!(after.open_descriptors >= before.open_descriptors + 150, "{before:?} {after:?}");
        assert!(after.resident_bytes > 0 && after.virtual_bytes >= after.resident_bytes);
        assert!(after.processor_time >= before.processor_time && after.threads > 0);
        drop(open);
    }
}
