//! The body of a request, whole and bounded.

use std::pin::pin;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body;
use lastbyte_sys::memory;
use lastbyte_wire::{Error, ErrorCode};
use tokio::time::timeout;

use crate::Limits;

/// How much free memory a large body needs, as a multiple of its size: it is parsed, and copied for
/// a child or its input queue. A failed allocation there would abort the server.
const SPARE: usize = 6;
/// From this size on it is checked.
const LARGE: usize = 1 << 20;

/// Reads a body to its end. One that says it is too large is refused before a byte is read.
pub async fn collect<B>(body: B, limits: &Limits) -> Result<Bytes, Error>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let most = limits.body_bytes;
    let hint = body.size_hint();
    if usize::try_from(hint.lower()).map_or(true, |least| least > most) {
        return Err(too_large(most));
    }
    let announced = hint.exact().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
    check_memory(announced)?;
    // Copied together: a piece from hyper keeps the whole buffer that it was read into.
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(announced).map_err(|_| out_of_memory(announced))?;
    let reading = async {
        let mut body = pin!(body);
        while let Some(frame) = body.as_mut().frame().await {
            // Trailers say nothing to us.
            let Ok(data) = frame.map_err(|error| cut_short(error.into()))?.into_data() else {
                continue;
            };
            let len = bytes.len() + data.len();
            if len > most {
                return Err(too_large(most));
            }
            bytes.try_reserve(data.len()).map_err(|_| out_of_memory(len))?;
            bytes.extend_from_slice(&data);
        }
        Ok(())
    };
    timeout(limits.body_time, reading).await.unwrap_or_else(|_| {
        let seconds = limits.body_time.as_secs_f64();
        let message = format!("timed out after {seconds} s waiting for the body");
        Err(Error::new(ErrorCode::RequestTooSlow, message))
    })?;
    // Others may have taken memory since the first check.
    check_memory(bytes.len())?;
    Ok(bytes.into())
}

/// Whether the machine has memory for a body of this size and what becomes of it.
pub(crate) fn check_memory(bytes: usize) -> Result<(), Error> {
    if bytes >= LARGE && !memory::is_available(SPARE.saturating_mul(bytes)) {
        return Err(out_of_memory(bytes));
    }
    Ok(())
}

fn cut_short(error: Box<dyn std::error::Error + Send + Sync>) -> Error {
    let why = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    let message = format!("cannot read the body to its end: {error}{why}");
    Error::new(ErrorCode::InvalidRequest, message)
}

fn out_of_memory(bytes: usize) -> Error {
    let message = format!("not enough memory for a body of {bytes} bytes");
    Error::new(ErrorCode::OutOfMemory, message).hint("send less at once, or try again later")
}

fn too_large(most: usize) -> Error {
    let message = format!("the body is larger than the limit of {most} bytes");
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

    fn limits() -> Limits {
        Limits { body_bytes: 8, body_time: Duration::from_millis(20), ..Limits::default() }
    }

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
        assert_eq!(collect(Full::from("12345678"), &limits()).await, Ok("12345678".into()));
        let pieces = Pieces(vec![Some("5678"), Some("1234")]);
        assert_eq!(collect(pieces, &limits()).await, Ok("12345678".into()));
    }

    #[tokio::test]
    async fn one_more_is_too_many_and_the_bound_is_named() {
        let want = "the body is larger than the limit of 8 bytes";
        let want = Err(Error::new(ErrorCode::BodyTooLarge, want));
        assert_eq!(collect(Full::from("123456789"), &limits()).await, want);
        let never_read = Pieces(vec![None, Some("56789"), Some("1234")]);
        assert_eq!(collect(never_read, &limits()).await, want);
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let error = collect(Pieces(vec![None, Some("1")]), &limits()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::RequestTooSlow);
        assert!(error.message.contains("0.02 s"), "{error}");
    }
}
