//! What keeper and worker say to each other, as numbers.
//!
//! Both are the same program, or the worker is another version of it after an upgrade. One that
//! speaks otherwise is told apart by its first message.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use lastbyte_sys::{Signal, Status};

/// Why the last worker died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Death {
    pub status: Status,
    /// The keeper killed it because it did not show that it lives.
    pub hung: bool,
    /// It was the first of another program and was never ready, so the program before it runs.
    pub undone: bool,
    /// When, in milliseconds of the monotonic clock.
    pub at: u64,
}

/// From the worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Hello {
        version: u32,
    },
    Ready,
    Stopping,
    /// When this worker leaves for it, the next one runs this program.
    Upgrade {
        path: OsString,
    },
}

/// The keeper's answer: it has done what was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Done {
    Stopping = 0,
    Upgrade = u32::MAX,
}

/// What `leaving` is for a worker that leaves for an upgrade; for another it is its code and 1.
pub(crate) const LEAVES_FOR_UPGRADE: u32 = u32::MAX;

/// The keeper's answer to [`Said::Hello`]. With it come the registry, the stand-in's socket, the lock,
/// the listeners and the sockets of older stand-ins, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Welcome {
    pub(crate) generation: u32,
    pub(crate) keeper: i32,
    pub(crate) restarts: u32,
    /// No worker was ready before this one.
    pub(crate) first: bool,
    /// Since when the keeper runs, in milliseconds of the monotonic clock.
    pub(crate) since: u64,
    pub(crate) last_death: Option<Death>,
    /// What the listeners are, to the worker.
    pub(crate) kinds: Vec<u8>,
    /// Whose older stand-ins.
    pub(crate) stand_ins: Vec<u32>,
}

/// The longest message, in bytes.
pub(crate) const MOST_BYTES: usize = 4096;

/// What [`Said::Upgrade`] begins with; its path follows.
const UPGRADE_KIND: [u8; 4] = 5_u32.to_ne_bytes();

impl Said {
    pub(crate) fn encode(&self) -> Vec<u8> {
        to_bytes(match self {
            Self::Hello { version } => [1, *version],
            Self::Ready => [2, 0],
            Self::Stopping => [3, 0],
            Self::Upgrade { path } => return [&UPGRADE_KIND, path.as_bytes()].concat(),
        })
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        if let Some(path) = bytes.strip_prefix(&UPGRADE_KIND) {
            return Some(Self::Upgrade { path: OsString::from_vec(path.to_vec()) });
        }
        match to_words(bytes)[..] {
            [1, version, ..] => Some(Self::Hello { version }),
            [2, ..] => Some(Self::Ready),
            [3, ..] => Some(Self::Stopping),
            _ => None,
        }
    }
}

impl Done {
    pub(crate) fn encode(self) -> Vec<u8> {
        to_bytes([self as u32, 0])
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        match to_words(bytes)[..] {
            [0, ..] => Some(Self::Stopping),
            [u32::MAX, ..] => Some(Self::Upgrade),
            _ => None,
        }
    }
}

impl Welcome {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let death = self.last_death.map_or([0; 5], Death::words);
        let head = [self.generation, self.keeper.cast_unsigned(), self.restarts, self.first.into()];
        let counts = [self.kinds.len() as u32, self.stand_ins.len() as u32];
        let kinds = self.kinds.iter().map(|kind| u32::from(*kind));
        let [low, high] = halves(self.since);
        let words = head.into_iter().chain([low, high]).chain(death).chain(counts);
        to_bytes(words.chain(kinds).chain(self.stand_ins.iter().copied()))
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let words = to_words(bytes);
        let (&[generation, keeper, restarts, first, low, high], rest) =
            words.split_first_chunk()?;
        let (death, rest) = rest.split_first_chunk::<5>()?;
        let (&[kinds, stand_ins], rest) = rest.split_first_chunk()?;
        let (kinds, rest) = rest.split_at_checked(kinds as usize)?;
        Some(Self {
            generation,
            keeper: keeper.cast_signed(),
            restarts,
            first: first != 0,
            since: whole([low, high]),
            last_death: Death::from_words(*death),
            kinds: kinds.iter().map(|kind| *kind as u8).collect(),
            stand_ins: rest.get(..stand_ins as usize)?.to_vec(),
        })
    }
}

impl Death {
    fn words(self) -> [u32; 5] {
        let (kind, value) = match self.status {
            Status::Exited(code) => (1, code.cast_unsigned()),
            Status::Signalled { signal, core_dumped: false } => (2, signal.number().unsigned_abs()),
            Status::Signalled { signal, core_dumped: true } => (3, signal.number().unsigned_abs()),
        };
        let [low, high] = halves(self.at);
        [kind, value, u32::from(self.hung) | u32::from(self.undone) << 1, low, high]
    }

    fn from_words([kind, value, how, low, high]: [u32; 5]) -> Option<Self> {
        let signal = || Signal::from_number(value.cast_signed()).ok();
        let status = match kind {
            1 => Status::Exited(value.cast_signed()),
            2 => Status::Signalled { signal: signal()?, core_dumped: false },
            3 => Status::Signalled { signal: signal()?, core_dumped: true },
            _ => return None,
        };
        let [hung, undone] = [how & 1 != 0, how & 2 != 0];
        Some(Self { status, hung, undone, at: whole([low, high]) })
    }
}

fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

fn whole([low, high]: [u32; 2]) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn to_bytes(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_ne_bytes).collect()
}

fn to_words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| word.try_into().map_or(0, u32::from_ne_bytes)).collect()
}

#[cfg(test)]
mod tests {
    use lastbyte_testkit::{Corpus, fuzz};

    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let upgrade = Said::Upgrade { path: "/opt/last byte".into() };
        for said in [Said::Hello { version: 3 }, Said::Ready, Said::Stopping, upgrade] {
            assert_eq!(Said::decode(&said.encode()), Some(said));
        }
        for done in [Done::Stopping, Done::Upgrade] {
            assert_eq!(Done::decode(&done.encode()), Some(done));
        }
        assert_eq!(Said::decode(b"something else"), None);
        assert_eq!(Done::decode(b""), None);
    }

    /// What is understood means the same when it is said again.
    #[test]
    fn no_message_does_harm() {
        let corpus = Corpus { name: "keeper", made: said(), ..Corpus::default() };
        fuzz(corpus, |bytes| {
            let bytes = &bytes[..bytes.len().min(MOST_BYTES)];
            let (said, done) = (Said::decode(bytes), Done::decode(bytes));
            let welcome = Welcome::decode(bytes);
            assert_eq!(said.as_ref().and_then(|said| Said::decode(&said.encode())), said);
            assert_eq!(done.and_then(|done| Done::decode(&done.encode())), done);
            let again = welcome.as_ref().and_then(|welcome| Welcome::decode(&welcome.encode()));
            assert_eq!(again, welcome);
            let parts = welcome.map(|welcome| (welcome.kinds.len(), welcome.stand_ins.len()));
            (said.map(|said| std::mem::discriminant(&said)), parts)
        });
    }

    fn said() -> Vec<Vec<u8>> {
        let status = Status::Signalled { signal: Signal::KILL, core_dumped: true };
        let welcome = Welcome {
            generation: 3,
            keeper: 7,
            restarts: 2,
            first: true,
            since: 1 << 40,
            last_death: Some(Death { status, hung: true, undone: false, at: 9 }),
            kinds: vec![0, 1],
            stand_ins: vec![1],
        };
        let upgrade = Said::Upgrade { path: "/opt/last byte".into() };
        vec![welcome.encode(), upgrade.encode(), Said::Hello { version: 3 }.encode()]
    }

    #[test]
    fn a_welcome_is_understood_whole_and_not_when_it_is_cut() {
        let killed = |core_dumped| Status::Signalled { signal: Signal::KILL, core_dumped };
        let statuses = [Status::Exited(101), killed(true), killed(false)];
        for (status, undone) in statuses.into_iter().zip([true, false, true]) {
            let welcome = Welcome {
                generation: 3,
                keeper: 1 << 22,
                restarts: 2,
                first: false,
                since: u64::MAX - 1,
                last_death: Some(Death { status, hung: !undone, undone, at: 1 << 40 }),
                kinds: vec![0, 1, 255],
                stand_ins: vec![1, 2],
            };
            let bytes = welcome.encode();
            assert_eq!(Welcome::decode(&bytes), Some(welcome));
            assert_eq!(Welcome::decode(&bytes[..bytes.len() - 4]), None);
        }
        assert_eq!(Welcome::decode(b""), None);
    }
}
