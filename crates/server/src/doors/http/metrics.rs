//! `GET /metrics`, and the clock that runs while any route answers.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, header};
use axum::middleware::Next;
use tokio::task::spawn_blocking;

use super::answer::Answer;
use crate::App;
use crate::metrics::{Answered, page};
use crate::verbs::refusal::broken;

/// Version 0.0.4 is the text format that every collector takes.
const KIND: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) async fn tell_metrics(State(app): State<App>) -> Answer {
    // Off the runtime: it looks at every process and at every descriptor.
    let text = spawn_blocking(move || page(&app)).await;
    let text = text.map_err(|_| broken("the page of metrics"))?;
    let mut answer = Response::new(Body::from(text));
    answer.headers_mut().insert(header::CONTENT_TYPE, KIND);
    Ok(answer)
}

/// Notes how long a route took to the head of its answer.
pub(super) async fn timed(
    State(answered): State<Arc<Answered>>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let asked = Instant::now();
    let answer = next.run(request).await;
    answered.note(&answer, asked.elapsed());
    answer
}
