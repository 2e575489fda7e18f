//! A line for each request: what was asked and how it went, never what was in it.

use std::time::Instant;

use axum::http::{Method, StatusCode, Uri};

use super::peer::Peer;

/// What is known when a request comes.
#[derive(Debug)]
pub(super) struct Entry {
    method: Method,
    target: Uri,
    peer: Peer,
    began: Instant,
}

impl Entry {
    pub(super) fn begin(method: &Method, target: &Uri, peer: Peer) -> Self {
        Self { method: method.clone(), target: target.clone(), peer, began: Instant::now() }
    }

    /// Once the head of its answer is there. A query may have text of the client's in it and is
    /// left out.
    pub(super) fn end(self, status: StatusCode) {
        tracing::info!(
            target: "access",
            method = %self.method,
            path = self.target.path(),
            status = status.as_u16(),
            us = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX),
            peer = %self.peer,
            "request"
        );
    }
}
