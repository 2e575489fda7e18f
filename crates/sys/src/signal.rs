//! A signal by number, and the names people type.

use std::fmt;
use std::str::FromStr;

/// A signal that exists on this system: 1 to 64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signal(i32);

/// The text or number is not a signal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a signal: use a name like TERM or a number from 1 to 64")]
pub struct UnknownSignal(pub String);

impl Signal {
    pub const HUP: Self = Self(libc::SIGHUP);
    pub const INT: Self = Self(libc::SIGINT);
    pub const QUIT: Self = Self(libc::SIGQUIT);
    pub const KILL: Self = Self(libc::SIGKILL);
    pub const PIPE: Self = Self(libc::SIGPIPE);
    pub const TERM: Self = Self(libc::SIGTERM);
    pub const CHLD: Self = Self(libc::SIGCHLD);
    pub const CONT: Self = Self(libc::SIGCONT);
    pub const STOP: Self = Self(libc::SIGSTOP);
    pub const SYS: Self = Self(libc::SIGSYS);
    pub const XCPU: Self = Self(libc::SIGXCPU);
    pub const XFSZ: Self = Self(libc::SIGXFSZ);

    /// The signal with this number, if it exists.
    pub fn from_number(number: i32) -> Result<Self, UnknownSignal> {
        match number {
            1..=64 => Ok(Self(number)),
            other => Err(UnknownSignal(other.to_string())),
        }
    }

    pub fn number(self) -> i32 {
        self.0
    }

    /// Its name without `SIG`, or `None` for a real-time signal.
    pub fn name(self) -> Option<&'static str> {
        NAMES.get(self.0.unsigned_abs() as usize - 1).copied()
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(out, "SIG{name}"),
            None => write!(out, "signal {}", self.0),
        }
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}

impl FromStr for Signal {
    type Err = UnknownSignal;

    /// Accepts `TERM` and `SIGTERM` in any letter case, and numbers.
    fn from_str(text: &str) -> Result<Self, UnknownSignal> {
        let unknown = || UnknownSignal(text.to_owned());
        if let Ok(number) = text.parse::<i32>() {
            return Self::from_number(number).map_err(|_| unknown());
        }
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let mut named = (1..).zip(NAMES).filter(|(_, known)| *known == name);
        named.next().map(|(number, _)| Self(number)).ok_or_else(unknown)
    }
}

/// From 1 on, the same on every processor that this program runs on.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_read_as_people_write_it() {
        for text in ["TERM", "SIGTERM", "sigterm", "term", "15"] {
            assert_eq!(text.parse(), Ok(Signal::TERM), "{text}");
        }
        assert_eq!("40".parse::<Signal>().map(|s| s.to_string()), Ok("signal 40".into()));
    }

    #[test]
    fn the_names_are_in_the_order_of_the_numbers() {
        let some = [(libc::SIGHUP, "HUP"), (libc::SIGUSR1, "USR1"), (libc::SIGSTKFLT, "STKFLT")];
        let more = [(libc::SIGSTOP, "STOP"), (libc::SIGURG, "URG"), (libc::SIGSYS, "SYS")];
        for (number, name) in some.into_iter().chain(more) {
            assert_eq!(Signal::from_number(number).unwrap().name(), Some(name));
        }
        assert_eq!(Signal(32).name(), None);
    }

    #[test]
    fn what_is_no_signal_is_refused_by_its_text() {
        for text in ["", "0", "65", "-9", "SIGNOPE", "SIG", "99999999999"] {
            assert_eq!(text.parse::<Signal>(), Err(UnknownSignal(text.into())));
        }
    }
}
