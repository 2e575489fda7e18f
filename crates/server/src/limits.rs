//! Every bound of the server, in one place.

use std::time::Duration;

/// What a server takes at most; each has an error that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at one time, of all listeners together. One more is told so and closed.
    pub connections: usize,
    /// Requests that wait for something at one time.
    pub waits: usize,
    /// Searches at one time; others wait for their turn.
    pub searches: usize,
    /// How long a client of Coder's agent waits for an ending in one request.
    pub coder_wait: Duration,
    /// The bytes of a request's line and fields; at least 8 KiB.
    pub head_bytes: usize,
    /// The fields of a head.
    pub head_fields: usize,
    /// For a whole head, from the moment it is waited for; so also how long a connection may idle.
    pub head_time: Duration,
    /// How long a client may take nothing of an answer that is there for it. What a connection was
    /// upgraded to has no such limit.
    pub stall: Duration,
    /// How long what a client still sends is thrown away after a last answer, so that it reads it.
    pub linger: Duration,
    /// The bytes of a request's body.
    pub body_bytes: usize,
    /// The bytes of all bodies that are on their way at one time.
    pub bodies_bytes: usize,
    /// For a whole body.
    pub body_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            waits: 4096,
            searches: 4,
            coder_wait: Duration::from_secs(5 * 60),
            head_bytes: 64 << 10,
            head_fields: 100,
            head_time: Duration::from_secs(20),
            stall: Duration::from_secs(20),
            linger: Duration::from_secs(2),
            body_bytes: 16 << 20,
            bodies_bytes: 256 << 20,
            body_time: Duration::from_secs(60),
        }
    }
}
