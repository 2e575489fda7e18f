//! `POST …/{id}/signal`: KILL to everything of a process, or TERM to its group.

use axum::body::Body;
use axum::http::StatusCode;
use lastbyte_engine::{Delivery, Phase, Process, Signal, StopPolicy, Verb};

use super::answer::{Answer, Refusal};
use super::chat::Chat;
use super::go_quote::quote;
use super::json_out::Object;
use super::request::SignalRequest;
use super::routes::read_body;
use crate::App;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Kill,
    Terminate,
}

/// Whether anybody was there to get it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Yes,
    ToNobody,
}

/// What another chat started is not there for this one, whatever the body says.
pub(super) async fn signal(app: &App, chat: &Chat, id: &[u8], body: Body) -> Answer {
    let process = Chat::default().find(app, id);
    if process.as_ref().is_some_and(|process| !chat.reaches(process)) {
        return Err(Refusal::not_found(id));
    }
    let body = read_body(app, body).await?;
    let request = SignalRequest::decode(&body).map_err(|fault| Refusal::bad_json(&fault))?;
    let asked = asked(&request.signal)?;
    let process = process.ok_or_else(|| Refusal::not_found(id))?;
    let sent = match asked {
        Asked::Kill => kill(process).await,
        Asked::Terminate => terminate(&process).await?,
    };
    match sent {
        Sent::Yes => {
            let signal = quote(request.signal.as_bytes());
            let message = format!("Signal {signal} sent to process {}.", quote(id));
            Ok(Object::new().text("message", message))
        }
        Sent::ToNobody => {
            let message = format!("Process {} is not running.", quote(id));
            Err(Refusal::new(StatusCode::CONFLICT, message))
        }
    }
}

fn asked(signal: &str) -> Result<Asked, Refusal> {
    let message = match signal {
        "kill" => return Ok(Asked::Kill),
        "terminate" => return Ok(Asked::Terminate),
        "" => "Signal is required.".to_owned(),
        other => {
            let other = quote(other.as_bytes());
            format!("Unsupported signal {other}. Use \"kill\" or \"terminate\".")
        }
    };
    Err(Refusal::new(StatusCode::BAD_REQUEST, message))
}

/// The whole tree. While the leader lives nobody waits for the proof; after its exit only the
/// proof says whether anybody was left.
async fn kill(process: Process) -> Sent {
    let phase = process.snapshot().phase;
    let stop = async move { process.stop_by(StopPolicy::KILL, Verb::Stop).await };
    match phase {
        Phase::Running => {
            tokio::spawn(stop);
            Sent::Yes
        }
        Phase::Draining => match stop.await.signalled[..] {
            [] => Sent::ToNobody,
            [..] => Sent::Yes,
        },
        Phase::Ended(_) => Sent::ToNobody,
    }
}

async fn terminate(process: &Process) -> Result<Sent, Refusal> {
    if process.snapshot().ending().is_some() {
        return Ok(Sent::ToNobody);
    }
    match process.signal(Signal::TERM).await {
        Ok(Delivery::Group | Delivery::Survivors(_)) => Ok(Sent::Yes),
        Ok(Delivery::Nobody) => Ok(Sent::ToNobody),
        Err(error) => {
            let message = "Failed to signal process.";
            let refusal = Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, message);
            Err(refusal.detail(format!("terminate process: {error}")))
        }
    }
}
