//! The signal sets of a process, as `/proc/PID/status` tells them.

/// Which signals a process blocks, ignores and catches, by number and in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignalSets {
    pub blocked: Vec<u32>,
    pub ignored: Vec<u32>,
    pub caught: Vec<u32>,
}

impl SignalSets {
    /// Reads the text of a `/proc/PID/status`, for instance what `cat /proc/self/status` printed.
    ///
    /// A program written in Rust ignores SIGPIPE and catches SIGSEGV and SIGBUS before its `main`
    /// begins, so only a program in another language shows all that its parent left it.
    pub fn from_status(status: &str) -> Self {
        let set = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix(name)).map(numbers).unwrap_or_default()
        };
        Self { blocked: set("SigBlk:"), ignored: set("SigIgn:"), caught: set("SigCgt:") }
    }
}

fn numbers(mask: &str) -> Vec<u32> {
    let mask = u64::from_str_radix(mask.trim(), 16).unwrap_or_default();
    (1..=64).filter(|signal| mask >> (signal - 1) & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::SignalSets;

    #[test]
    fn a_mask_becomes_signal_numbers() {
        let status = "Name:\tx\nSigBlk:\t8000000000004000\nSigIgn:\t0000000000001003\n";
        let want = SignalSets { blocked: vec![15, 64], ignored: vec![1, 2, 13], caught: vec![] };
        assert_eq!(SignalSets::from_status(status), want);
    }
}
