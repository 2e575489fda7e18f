//! Tickets: each opens one WebSocket, for which a browser cannot send a token.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::listen::random_text;
use crate::listen::scope::Grant;

#[derive(Debug, Default)]
pub(super) struct Tickets(Mutex<HashMap<String, (Grant, Instant)>>);

/// A page uses it at once.
const LASTS: Duration = Duration::from_secs(30);
/// More would be made by mistake.
const MOST: usize = 1000;

impl Tickets {
    pub(super) fn create(&self, grant: &Grant) -> io::Result<(String, SystemTime)> {
        let (ticket, now) = (random_text()?, Instant::now());
        self.remove_expired(now);
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tickets.len() >= MOST {
            return Err(io::Error::other(format!("there are {MOST} unused tickets already")));
        }
        tickets.insert(ticket.clone(), (grant.clone(), now + LASTS));
        Ok((ticket, SystemTime::now() + LASTS))
    }

    pub(super) fn redeem(&self, ticket: &str, now: Instant) -> Option<Grant> {
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (grant, expires) = tickets.remove(ticket)?;
        (now < expires).then_some(grant)
    }

    /// Returns when the next one expires.
    pub(super) fn remove_expired(&self, now: Instant) -> Option<Instant> {
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.retain(|_, (_, expires)| now < *expires);
        tickets.values().map(|(_, expires)| *expires).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_works_once_and_not_for_long() {
        let tickets = Tickets::default();
        let now = Instant::now();
        let (used, _) = tickets.create(&Grant::all()).unwrap();
        assert!(tickets.redeem(&used, now).is_some());
        assert!(tickets.redeem(&used, now).is_none());
        let (late, _) = tickets.create(&Grant::all()).unwrap();
        assert!(tickets.redeem(&late, Instant::now() + LASTS).is_none());
        assert!(tickets.redeem("", now).is_none());
    }
}
