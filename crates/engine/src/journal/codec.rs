//! Values as bytes: numbers have a fixed size, little-endian; everything else follows its length, so
//! that no two values have the same bytes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::{Duration, SystemTime};

/// Turns values into bytes.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    pub(super) bytes: Vec<u8>,
}

/// Turns bytes into values; `None` if they are not valid.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    rest: &'a [u8],
}

impl Encoder {
    /// With room for nearly every record.
    pub(super) fn new() -> Self {
        Self { bytes: Vec::with_capacity(512) }
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(super) fn i32(&mut self, value: i32) {
        self.bytes.extend(value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.bytes.extend(value.to_le_bytes());
    }

    pub(super) fn u128(&mut self, value: u128) {
        self.bytes.extend(value.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, value: &[u8]) {
        self.u64(value.len() as u64);
        self.bytes.extend(value);
    }

    pub(super) fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    pub(super) fn os(&mut self, value: impl AsRef<OsStr>) {
        self.bytes(value.as_ref().as_bytes());
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.u8(value.into());
    }

    pub(super) fn option<T>(&mut self, value: Option<T>, encode: impl FnOnce(&mut Self, T)) {
        self.bool(value.is_some());
        if let Some(value) = value {
            encode(self, value);
        }
    }

    pub(super) fn list<T>(
        &mut self,
        values: impl ExactSizeIterator<Item = T>,
        encode: impl Fn(&mut Self, T),
    ) {
        self.u64(values.len() as u64);
        values.for_each(|value| encode(self, value));
    }

    pub(super) fn duration(&mut self, value: Duration) {
        self.u64(value.as_secs());
        self.bytes.extend(value.subsec_nanos().to_le_bytes());
    }

    /// A time before 1970 becomes its first instant.
    pub(super) fn time(&mut self, value: SystemTime) {
        self.duration(value.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default());
    }
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Checks that nothing is left.
    pub(super) fn end(&self) -> Option<()> {
        self.rest.is_empty().then_some(())
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_le_bytes)
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.u64()?).ok()?;
        self.take(count)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    pub(super) fn os(&mut self) -> Option<OsString> {
        Some(OsString::from_vec(self.bytes()?.to_vec()))
    }

    pub(super) fn bool(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    #[expect(clippy::option_option, reason = "the outer one is for invalid bytes")]
    pub(super) fn option<T>(
        &mut self,
        decode: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<Option<T>> {
        if self.bool()? { decode(self).map(Some) } else { Some(None) }
    }

    pub(super) fn list<T, C: FromIterator<T>>(
        &mut self,
        mut decode: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<C> {
        (0..self.u64()?).map(|_| decode(self)).collect()
    }

    pub(super) fn duration(&mut self) -> Option<Duration> {
        let (seconds, nanos) = (self.u64()?, self.array().map(u32::from_le_bytes)?);
        (nanos < 1_000_000_000).then(|| Duration::new(seconds, nanos))
    }

    pub(super) fn time(&mut self) -> Option<SystemTime> {
        SystemTime::UNIX_EPOCH.checked_add(self.duration()?)
    }
}
