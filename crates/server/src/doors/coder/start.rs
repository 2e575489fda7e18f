//! `POST …/start` and `GET …/tokens/{token}`: a process, or the one that a token has started.

use std::ops::Not;

use axum::body::Body;
use axum::http::StatusCode;
use lastbyte_engine::{Key, Launch, Started};
use lastbyte_wire::{Error, ErrorCode, StartRequest};
use serde::Serialize;
use tokio::time::timeout;
use tracing::warn;

use super::answer::{Answer, Refusal, ok};
use super::chat::Chat;
use super::go_quote::quote;
use super::launch::{RetryKey, launch};
use super::list::unix_seconds;
use super::request::StartBody;
use crate::App;
use crate::verbs::refusal::from_start;

#[derive(Serialize)]
struct StartAnswer<'a> {
    id: String,
    started: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Not::not")]
    attached: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<u64>,
}

impl StartAnswer<'_> {
    fn running(id: String, attached: bool) -> Self {
        Self { id, started: true, idempotency_key: None, attached, started_at: None }
    }
}

pub(super) async fn start(app: &App, chat: &Chat, body: Body) -> Answer {
    let request = StartBody::decode(&app.body(body).await?)?;
    if request.command.is_empty() {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "Command is required."));
    }
    let key = RetryKey::new(&request);
    if let Some(key) = key.as_ref().filter(|key| key.is_too_long()) {
        let message =
            format!("{} is longer than {} bytes.", key.kind(), StartRequest::LONGEST_NAME);
        return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
    }
    let mut launch =
        launch(request, chat).map_err(|error| failed(format!("start process: {error}")))?;
    let bound = app.scope.bind(&mut launch);
    bound.map_err(|error| Refusal::forbidden(&error))?;
    let sandbox = app.sandboxing.choose(None);
    let sandbox = sandbox.map_err(|way| failed(format!("start process: {way}")))?;
    let start = app.engine.start(Launch { sandbox, ..launch });
    let started = match &key {
        // A start continues when its client stops waiting, so a client that can repeat the request
        // under its key is told that it has not finished. Others could not use that answer.
        Some(key @ RetryKey::IdempotencyKey(_)) => {
            timeout(app.limits.coder_start, start).await.map_err(|_| pending(app, key))?
        }
        Some(RetryKey::ClientToken(_)) | None => start.await,
    };
    let started = started.map_err(|error| refuse(&from_start(&error), key.as_ref()))?;
    for warning in &started.warnings {
        warn!(id = %started.process.id(), %warning, "a process was started with less than asked for");
    }
    answer(&started, key.as_ref())
}

fn pending(app: &App, key: &RetryKey) -> Refusal {
    let message = format!("{key} belongs to a start that has not finished.");
    let detail = format!("not finished after {:?}; repeat the request", app.limits.coder_start);
    Refusal::new(StatusCode::CONFLICT, message).code("start_pending").detail(detail)
}

pub(super) fn by_token(app: &App, chat: &Chat, token: &[u8]) -> Answer {
    let key = std::str::from_utf8(token).map(|token| Key(token.into())).ok();
    let process = key.and_then(|key| app.engine.keyed(&app.scope.key(&key)));
    match process.filter(|process| app.reaches(process) && chat.reaches(process)) {
        Some(process) => ok(&StartAnswer::running(process.id().to_string(), true)),
        None => {
            let message = format!("Process token {} not found.", quote(token));
            Err(Refusal::new(StatusCode::NOT_FOUND, message))
        }
    }
}

fn answer(started: &Started, key: Option<&RetryKey>) -> Answer {
    let Started { process, attached, .. } = started;
    let id = process.id().to_string();
    ok(&match key {
        Some(RetryKey::IdempotencyKey(key)) => StartAnswer {
            id,
            started: !attached,
            idempotency_key: Some(key),
            attached: *attached,
            started_at: Some(unix_seconds(process.spec().started)),
        },
        Some(RetryKey::ClientToken(_)) | None => StartAnswer::running(id, *attached),
    })
}

fn refuse(error: &Error, key: Option<&RetryKey>) -> Refusal {
    match (error.code, key) {
        (ErrorCode::KeyConflict, Some(key)) => other_request(key),
        (ErrorCode::ShuttingDown, _) => failed("manager is closed".into()),
        // Clients look for these words.
        (ErrorCode::ProgramNotFound, _) => {
            failed("start process: exec: \"sh\": executable file not found in $PATH".into())
        }
        _ => failed(format!("start process: {}", error.message)),
    }
}

fn other_request(key: &RetryKey) -> Refusal {
    let message = format!("{key} belongs to a different request.");
    let refusal = Refusal::new(StatusCode::CONFLICT, message);
    match key {
        RetryKey::ClientToken(token) => refusal.detail(format!(
            "the key {token:?} was already used with a different command, option or environment"
        )),
        // The engine's text has the chat in its key.
        RetryKey::IdempotencyKey(_) => refusal
            .code("input_mismatch")
            .detail("the command, directory, environment or background flag differs"),
    }
}

fn failed(detail: String) -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "Failed to start process.").detail(detail)
}
