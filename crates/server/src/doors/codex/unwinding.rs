//! Work that may panic without taking along who waits for it.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;

/// The work has panicked, and was dropped where it stood. The panic was printed already.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Panicked;

/// What comes of this work. What it borrows must be fit for use after a panic at any await.
pub(super) async fn unless_it_panics<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = pin!(work);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(_) => std::task::Poll::Ready(Err(Panicked)),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_told_and_anything_else_is_passed_on() {
        let steadily = async {
            tokio::task::yield_now().await;
            7
        };
        assert_eq!(unless_it_panics(steadily).await, Ok(7));
        let badly = async {
            tokio::task::yield_now().await;
            panic!("on purpose")
        };
        assert_eq!(unless_it_panics::<()>(badly).await, Err(Panicked));
    }
}
