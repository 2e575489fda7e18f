//! What every transport gives a connection: messages, one after the other.

/// A longer message is not taken in. The largest that makes sense carries all that a command's
/// input queue takes, which is 22 MiB in base64.
pub const MOST_MESSAGE_BYTES: usize = 128 << 20;

pub(in crate::doors::codex) trait Incoming: Send {
    /// The next message; `None` when there are no more. Cancel-safe.
    fn next(&mut self) -> impl Future<Output = Option<Vec<u8>>> + Send;
}
