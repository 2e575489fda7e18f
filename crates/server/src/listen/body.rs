//! The body of a request, whole and bounded.

use crate::Limits;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;
use lastbyte_wire::{Error, ErrorCode};
use tokio::time::timeout;

/// Reads a body to its end. One that says it is too large is refused before a byte is read.
pub async fn collect<B>(body: B, limits: &Limits) -> Result<Bytes, Error>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let most = limits.body_bytes;
    if usize::try_from(body.size_hint().lower()).map_or(true, |least| least > most) {
        return Err(too_large(most));
    }
    let body = Limited::new(body, most).collect();
    match timeout(limits.body_time, body).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(most)),
        Ok(Err(error)) => {
            let why = error.source().map(|source| format!(": {source}")).unwrap_or_default();
            let message = format!("the body does not come to its end: {error}{why}");
            Err(Error::new(ErrorCode::InvalidRequest, message))
        }
        Err(_) => {
            let seconds = limits.body_time.as_secs_f64();
            let message = format!("the body has not come in {seconds} s, as long as is waited");
            Err(Error::new(ErrorCode::RequestTooSlow, message))
        }
    }
}

fn too_large(most: usize) -> Error {
    let message = format!("the body is larger than {most} bytes, the most that is taken");
    Error::new(ErrorCode::BodyTooLarge, message)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use http_body_util::Full;
    use hyper::body::Frame;

    use super::*;

    const LIMITS: Limits = Limits {
        connections: 1,
        waits: 1,
        searches: 1,
        coder_wait: Duration::ZERO,
        head_bytes: 8192,
        head_fields: 1,
        head_time: Duration::ZERO,
        stall: Duration::ZERO,
        linger: Duration::ZERO,
        body_bytes: 8,
        bodies_bytes: 8,
        body_time: Duration::from_millis(20),
    };

    /// A body that does not say how long it is, of these pieces, the last first;
    /// `None` never comes.
    struct Pieces(Vec<Option<&'static str>>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            match self.0.last() {
                None => Poll::Ready(None),
                Some(None) => Poll::Pending,
                Some(&Some(piece)) => {
                    self.0.pop();
                    Poll::Ready(Some(Ok(Frame::data(piece.into()))))
                }
            }
        }
    }

    #[tokio::test]
    async fn a_body_of_the_most_bytes_is_taken() {
        assert_eq!(collect(Full::from("12345678"), &LIMITS).await, Ok("12345678".into()));
        let pieces = Pieces(vec![Some("5678"), Some("1234")]);
        assert_eq!(collect(pieces, &LIMITS).await, Ok("12345678".into()));
    }

    #[tokio::test]
    async fn one_more_is_too_many_and_the_bound_is_named() {
        let want = "the body is larger than 8 bytes, the most that is taken";
        let want = Err(Error::new(ErrorCode::BodyTooLarge, want));
        assert_eq!(collect(Full::from("123456789"), &LIMITS).await, want);
        let never_read = Pieces(vec![None, Some("56789"), Some("1234")]);
        assert_eq!(collect(never_read, &LIMITS).await, want);
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let error = collect(Pieces(vec![None, Some("1")]), &LIMITS).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::RequestTooSlow);
        assert!(error.message.contains("0.02 s"), "{error}");
    }
}
