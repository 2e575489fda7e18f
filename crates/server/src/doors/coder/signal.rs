//! `POST …/{id}/signal`: KILL to everything of a process, or TERM to its group.

use axum::body::Body;
use axum::http::StatusCode;
use lastbyte_engine::{Delivery, Phase, Process, Signal, StopPolicy, Verb};
use serde_json::json;

use super::answer::{Answer, Refusal, ok};
use super::chat::Chat;
use super::go_quote::quote;
use super::request::decode_signal;
use crate::App;

/// What another chat started is not there for this one, whatever the body says.
pub(super) async fn signal(app: &App, chat: &Chat, id: &[u8], body: Body) -> Answer {
    let process = Chat::default().find(app, id);
    if process.as_ref().is_some_and(|process| !chat.reaches(process)) {
        return Err(Refusal::not_found(id));
    }
    let signal = decode_signal(&app.body(body).await?)?;
    let process = process.ok_or_else(|| Refusal::not_found(id));
    let reached = match signal.as_str() {
        "kill" => kill(process?).await,
        "terminate" => terminate(&process?).await?,
        "" => return Err(Refusal::new(StatusCode::BAD_REQUEST, "Signal is required.")),
        other => {
            let message = format!("Unsupported signal {}.", quote(other.as_bytes()));
            let message = format!("{message} Use \"kill\" or \"terminate\".");
            return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
        }
    };
    if !reached {
        let message = format!("Process {} is not running.", quote(id));
        return Err(Refusal::new(StatusCode::CONFLICT, message));
    }
    let signal = quote(signal.as_bytes());
    let message = format!("Signal {signal} sent to process {}.", quote(id));
    ok(&json!({ "message": message }))
}

/// Kills the whole tree; says whether the signal reached a process. While the leader lives this does
/// not wait for the proof; after its exit only the proof says whether any process was left.
async fn kill(process: Process) -> bool {
    let phase = process.snapshot().phase;
    let stop = async move { process.stop_by(StopPolicy::KILL, Verb::Stop).await };
    match phase {
        Phase::Running => {
            tokio::spawn(stop);
            true
        }
        Phase::Draining => !stop.await.signalled.is_empty(),
        Phase::Ended(_) => false,
    }
}

async fn terminate(process: &Process) -> Result<bool, Refusal> {
    if process.snapshot().ending().is_some() {
        return Ok(false);
    }
    match process.signal(Signal::TERM).await {
        Ok(Delivery::Group | Delivery::Survivors(_)) => Ok(true),
        Ok(Delivery::Nobody) => Ok(false),
        Err(error) => {
            let message = "Failed to signal process.";
            let refusal = Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, message);
            Err(refusal.detail(format!("terminate process: {error}")))
        }
    }
}
