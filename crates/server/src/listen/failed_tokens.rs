//! How many requests with a wrong token each address has sent.
//!
//! A right token is always taken, so nobody can lock out another client behind the same address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The addresses that have failed within the last window.
#[derive(Debug, Default)]
pub(super) struct FailedTokens(Mutex<HashMap<IpAddr, Failures>>);

#[derive(Debug)]
struct Failures {
    count: u32,
    since: Instant,
}

pub(super) const WINDOW: Duration = Duration::from_secs(60);
/// So many are told that the token is wrong; further ones in a window are told to wait.
const MOST: u32 = 20;
/// Bounds the memory: further addresses count as one.
const MOST_ADDRESSES: usize = 1024;

impl FailedTokens {
    /// Counts a failure; says whether there were too many.
    pub(super) fn count(&self, address: IpAddr, now: Instant) -> bool {
        let mut addresses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut address = network(address);
        if addresses.len() >= MOST_ADDRESSES && !addresses.contains_key(&address) {
            addresses.retain(|_, failures| now.duration_since(failures.since) < WINDOW);
            if addresses.len() >= MOST_ADDRESSES {
                address = IpAddr::from([0; 4]);
            }
        }
        let failures = addresses.entry(address).or_insert(Failures { count: 0, since: now });
        if now.duration_since(failures.since) >= WINDOW {
            *failures = Failures { count: 0, since: now };
        }
        failures.count = failures.count.saturating_add(1);
        failures.count > MOST
    }
}

/// One client can have a whole /64 of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => address.into(),
            None => {
                let bits = u128::from(address) >> 64 << 64;
                IpAddr::V6(bits.into())
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_in_a_window_are_too_many_until_it_is_over() {
        let (failed, now) = (FailedTokens::default(), Instant::now());
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        assert!((0..MOST).all(|_| !failed.count(one, now)));
        assert!(failed.count(one, now) && failed.count(one, now + WINDOW / 2));
        assert!(!failed.count(other, now), "each address has its own count");
        assert!(!failed.count(one, now + WINDOW));
    }

    #[test]
    fn memory_is_bounded_whatever_the_addresses() {
        let (failed, now) = (FailedTokens::default(), Instant::now());
        for number in 0..u32::try_from(4 * MOST_ADDRESSES).unwrap() {
            failed.count(IpAddr::from(number.to_be_bytes()), now);
        }
        assert!(failed.0.lock().unwrap().len() <= MOST_ADDRESSES + 1);
    }
}
