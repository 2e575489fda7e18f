//! Every limit of the server.

use std::time::Duration;

/// What a server takes at most; each limit has an error that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at one time, over all listeners. For one more, a connection without a request is
    /// closed; if there is none, the new one is rejected.
    pub connections: usize,
    /// More connections, for unix sockets alone.
    pub reserved_connections: usize,
    /// Requests that wait at one time. As many as connections, so that those over TCP leave some for
    /// unix sockets: a TCP client that is gone is noticed late.
    pub waits: usize,
    /// Searches and views of long logs at one time; others wait for their turn.
    pub long_reads: usize,
    /// How long a client of Coder's agent waits for an ending in one request.
    pub coder_wait: Duration,
    /// How long a client of Coder's agent waits for a start under its `idempotency_key`. The
    /// agent's own server closes a connection without an answer after 20 s.
    pub coder_start: Duration,
    /// The bytes of a request's line and fields; at least 8 KiB.
    pub head_bytes: usize,
    /// The fields of a head.
    pub head_fields: usize,
    /// For a whole head, from the moment it is waited for; so also how long a connection may idle.
    pub head_time: Duration,
    /// How long a client may leave an answer unread. Upgraded connections have no such limit.
    pub stall: Duration,
    /// How long input is thrown away after a last answer, so that the client can read the answer.
    pub lingering_close: Duration,
    /// The bytes of a request's body.
    pub body_bytes: usize,
    /// The bytes of all bodies that are being received.
    pub bodies_bytes: usize,
    /// The bytes of all messages of more than 64 KiB that clients of one door send over WebSockets
    /// at one time.
    pub messages_bytes: usize,
    /// For a whole body, and for a whole message of more than 64 KiB.
    pub body_time: Duration,
    /// The bytes of all answers of more than 64 KiB that lie in memory at one time.
    pub answers_bytes: usize,
}

impl Limits {
    /// The usual bounds, of a server that may have so many descriptors, or any number: connections
    /// leave some for processes and their logs.
    pub fn within_descriptors(descriptors: Option<u64>) -> Self {
        let usual = Self::default();
        let descriptors = descriptors.and_then(|most| most.try_into().ok()).unwrap_or(usize::MAX);
        Self {
            connections: usual.connections.min(descriptors / 2),
            reserved_connections: usual.reserved_connections.min(descriptors / 16),
            ..usual
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            reserved_connections: 256,
            waits: 4096 + 256,
            long_reads: 4,
            coder_wait: Duration::from_secs(5 * 60),
            coder_start: Duration::from_secs(15),
            head_bytes: 64 << 10,
            head_fields: 100,
            head_time: Duration::from_secs(20),
            stall: Duration::from_secs(20),
            lingering_close: Duration::from_secs(2),
            body_bytes: 16 << 20,
            bodies_bytes: 128 << 20,
            messages_bytes: 128 << 20,
            body_time: Duration::from_secs(60),
            answers_bytes: 128 << 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_ports_leave_some_for_unix_sockets() {
        let limits = Limits::default();
        assert_eq!(limits.waits, limits.connections + limits.reserved_connections);
    }

    #[test]
    fn connections_leave_descriptors_for_processes() {
        let limits = Limits::within_descriptors(Some(1024));
        assert_eq!((limits.connections, limits.reserved_connections), (512, 64));
        assert_eq!(Limits::within_descriptors(Some(1 << 20)), Limits::default());
        assert_eq!(Limits::within_descriptors(Some(u64::MAX)), Limits::default());
        assert_eq!(Limits::within_descriptors(None), Limits::default());
    }
}
