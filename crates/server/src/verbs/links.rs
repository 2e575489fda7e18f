//! Links to the page, and tickets for its WebSockets.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use lastbyte_engine::{Process, Streams, WriteError};
use lastbyte_wire::{
    CreateLinkAnswer, CreateLinkRequest, Error, ErrorCode, TicketAnswer, TradeLinkAnswer,
    TradeLinkRequest,
};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::refusal::{self, broken};
use super::select::Finder;
use crate::App;
use crate::from_wire::invalid;
use crate::listen::{Needs, Peer};
use crate::to_wire::unix_ns;

/// Until a link expires.
const USUAL: Duration = Duration::from_secs(300);

/// A link for the client: the page may do no more than it.
pub async fn create(app: &App, request: &CreateLinkRequest) -> Result<CreateLinkAnswer, Error> {
    app.grant.check(Needs::Link)?;
    let hand_over = request.once == Some(true);
    let lasts = request.expires_in_ms.map_or(USUAL, Duration::from_millis);
    if lasts.is_zero() || lasts > Duration::from_millis(CreateLinkRequest::LONGEST_MS) {
        return Err(invalid("`expires_in_ms` must be greater than 0, and at most a day"));
    }
    let process = request.process.as_ref().map(|given| Finder::new(app).find(given)).transpose()?;
    let scope = match &process {
        Some(process) => app.scope.of_process(process.id()),
        None => app.scope.clone(),
    };
    if hand_over {
        check_hand_over(process.as_ref(), scope.only_reads())?;
    }
    let (pages, grant, runtime) = (Arc::clone(&app.pages), app.grant.clone(), Handle::current());
    let created = spawn_blocking(move || {
        // A new listener belongs to the runtime.
        let _runtime = runtime.enter();
        let address = pages.address()?;
        let (secret, expires) = pages.create_link(&grant, &scope, (hand_over, lasts))?;
        let url = format!("http://{address}/#link={secret}");
        io::Result::Ok(CreateLinkAnswer { url, expires_unix_ns: unix_ns(expires) })
    });
    let created = created.await.map_err(|_| broken("creating the link"))?;
    created.map_err(|error| failed("create the link", &error))
}

/// A person types into a terminal, which shows what the command asks and takes a line when Enter is pressed.
fn check_hand_over(process: Option<&Process>, only_reads: bool) -> Result<(), Error> {
    let process = process.ok_or_else(|| invalid("`once` needs `process`"))?;
    if only_reads {
        let message = "the token is read-only, so it cannot hand over a keyboard";
        return Err(Error::new(ErrorCode::ReadOnlyToken, message));
    }
    if process.snapshot().ending().is_some() {
        let message = format!("process {} has ended: nobody can type into it", process.id());
        return Err(Error::new(ErrorCode::ProcessExited, message));
    }
    if !matches!(process.spec().streams, Streams::Pty(_)) {
        let message = format!("process {} has no terminal to hand over", process.id());
        return Err(Error::new(ErrorCode::NoTerminal, message).hint(
            "start the command on a terminal (`tty` in the API, `lastbyte start --tty 24x80`), or write to its standard input yourself",
        ));
    }
    if process.stdin().is_none() {
        return Err(refusal::from_write(WriteError::NotOpen));
    }
    Ok(())
}

pub async fn trade(
    app: &App,
    peer: Option<Peer>,
    request: TradeLinkRequest,
) -> Result<TradeLinkAnswer, Error> {
    let pages = Arc::clone(&app.pages);
    let traded = spawn_blocking(move || pages.trade(&request.link, peer.as_ref())).await;
    let traded = traded.map_err(|_| broken("trading the link"))??;
    Ok(TradeLinkAnswer {
        token: traded.token,
        process: traded.scope.only().map(|id| id.to_string()),
        hand_over: traded.hand_over,
        read_only: traded.scope.only_reads(),
    })
}

/// A ticket with the grant of the request.
pub fn ticket(app: &App) -> Result<TicketAnswer, Error> {
    let (ticket, expires) =
        app.pages.create_ticket(&app.grant).map_err(|error| failed("create the ticket", &error))?;
    Ok(TicketAnswer { ticket, expires_unix_ns: unix_ns(expires) })
}

/// The person to whom the keyboard was handed over is done.
pub async fn done(app: &App) -> Result<(), Error> {
    let (pages, grant) = (Arc::clone(&app.pages), app.grant.clone());
    let done = spawn_blocking(move || grant.page.map_or(Ok(()), |page| pages.done(&page))).await;
    let done = done.map_err(|_| broken("ending the hand-over"))?;
    done.map_err(|error| failed("note the end of the hand-over", &error))
}

fn failed(what: &str, error: &io::Error) -> Error {
    Error::new(ErrorCode::Failed, format!("cannot {what}: {error}"))
}
