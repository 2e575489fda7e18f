//! `POST …/start` and `GET …/tokens/{token}`: a process, or the one that a token has started.

use axum::body::Body;
use axum::http::StatusCode;
use lastbyte_engine::{Key, Launch, Started};
use lastbyte_wire::{Error, ErrorCode};
use tracing::warn;

use super::answer::{Answer, Refusal};
use super::chat::Chat;
use super::go_quote::quote;
use super::json_out::Object;
use super::launch::launch;
use super::request::StartRequest;
use super::routes::read_body;
use crate::App;
use crate::verbs::refusal::of_start;

pub(super) async fn start(app: &App, chat: &Chat, body: Body) -> Answer {
    let body = read_body(app, body).await?;
    let request = StartRequest::decode(&body).map_err(|fault| Refusal::bad_json(&fault))?;
    if request.command.is_empty() {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "Command is required."));
    }
    let token = request.client_token.clone();
    let launch =
        launch(request, chat).map_err(|fault| failed(format!("start process: {fault}")))?;
    let sandbox = app.sandboxing.choose(None);
    let sandbox = sandbox.map_err(|way| failed(format!("start process: {way}")))?;
    let started = app.engine.start(Launch { sandbox, ..launch }).await;
    let started = started.map_err(|error| refuse(&of_start(&error), &token))?;
    let Started { process, attached, warnings } = started;
    for warning in warnings {
        warn!(id = %process.id(), %warning, "a process was started with less than asked for");
    }
    Ok(answer(&process.id().to_string(), attached))
}

pub(super) fn by_token(app: &App, chat: &Chat, token: &[u8]) -> Answer {
    let key = std::str::from_utf8(token).map(|token| Key(token.into())).ok();
    let process = key.and_then(|key| app.engine.keyed(&key));
    match process.filter(|process| chat.reaches(process)) {
        Some(process) => Ok(answer(&process.id().to_string(), true)),
        None => {
            let message = format!("Process token {} not found.", quote(token));
            Err(Refusal::new(StatusCode::NOT_FOUND, message))
        }
    }
}

fn answer(id: &str, attached: bool) -> Object {
    let answer = Object::new().text("id", id).bool("started", true);
    match attached {
        true => answer.bool("attached", true),
        false => answer,
    }
}

fn refuse(error: &Error, token: &str) -> Refusal {
    match error.code {
        ErrorCode::KeyConflict => {
            let token = quote(token.as_bytes());
            let message = format!("Process token {token} belongs to a different request.");
            Refusal::new(StatusCode::CONFLICT, message).detail(&error.message)
        }
        ErrorCode::ShuttingDown => failed("manager is closed".into()),
        // Clients look for these words.
        ErrorCode::ProgramNotFound => {
            failed("start process: exec: \"sh\": executable file not found in $PATH".into())
        }
        _ => failed(format!("start process: {}", error.message)),
    }
}

fn failed(detail: String) -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "Failed to start process.").detail(detail)
}
