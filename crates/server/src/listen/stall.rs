//! The timeout for a client that does not read its answer.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// The time that a write has been waiting for its client. It counts only while one does.
#[derive(Debug)]
pub(super) struct Stall {
    limit: Duration,
    waiting: Option<Stalled>,
}

#[derive(Debug)]
struct Stalled {
    until: Pin<Box<Sleep>>,
    /// What was on its way when the time began.
    unsent: Option<u64>,
}

impl Stall {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, waiting: None }
    }

    /// A write came to something.
    pub(super) fn moved(&mut self) {
        self.waiting = None;
    }

    /// Ready when a write has waited for the limit and the client has taken nothing meanwhile. A
    /// slow one takes bytes long before the kernel has room for more, which `unsent` tells.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        unsent: impl Fn() -> Option<u64>,
    ) -> Poll<()> {
        let limit = self.limit;
        let begin =
            || Stalled { until: Box::pin(sleep_until(Instant::now() + limit)), unsent: unsent() };
        let waiting = self.waiting.get_or_insert_with(begin);
        loop {
            ready!(waiting.until.as_mut().poll(context));
            let left = unsent();
            if left >= waiting.unsent {
                return Poll::Ready(());
            }
            waiting.unsent = left;
            waiting.until.as_mut().reset(Instant::now() + limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const LIMIT: Duration = Duration::from_millis(20);

    /// How many times the limit passed before it was over, with this on its way each time.
    async fn limits_until_over(unsent: &[u64]) -> u32 {
        let mut stall = Stall::new(LIMIT);
        let looks = std::cell::Cell::new(0);
        let began = Instant::now();
        poll_fn(|context| {
            stall.poll(context, || {
                let look = looks.replace(looks.get() + 1);
                unsent.get(look).copied()
            })
        })
        .await;
        (began.elapsed().as_millis() / LIMIT.as_millis()) as u32
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_has_one_limit() {
        assert!(limits_until_over(&[9, 9]).await >= 1);
    }

    #[tokio::test]
    async fn a_client_that_takes_something_has_another() {
        assert!(limits_until_over(&[9, 8, 7, 7]).await >= 3);
    }
}
