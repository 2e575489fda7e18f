//! `GET …/attach`: input and output of a process over one WebSocket.

use std::pin::pin;
use std::time::Duration;

use axum::extract::Request;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use lastbyte_engine::{Keyboard, KeyboardClient, Process};
use lastbyte_wire::{AttachNotice, AttachQuery, AttachRequest, Error, ErrorCode, ResizeRequest};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::answer::{Answer, json_text};
use super::input::{self, Caller, Target};
use super::keyboard_notices::KeyboardNotices;
use crate::App;
use crate::doors::websocket::{self, WebSocket};
use crate::from_wire::invalid;
use crate::to_wire;
use crate::verbs::follow::{Follower, Step};
use crate::verbs::{control, links, refusal, write};

/// A longer message is refused, and ends the connection.
const MOST_MESSAGE_BYTES: usize = 1 << 20;
/// How long the client's farewell is waited for, so that it reads ours.
const FAREWELL: Duration = Duration::from_secs(2);

pub(super) async fn attach_to_process(
    Caller(app): Caller,
    Target(process): Target,
    mut request: Request,
) -> Answer {
    let query: AttachQuery = input::query(request.uri())?;
    let permit = app.begin_wait()?;
    let follower = Follower::attached(&process, &query)?;
    let Some((response, upgrade)) = websocket::upgrade(&mut request) else {
        let hint = "use a WebSocket client, or `output` or `follow` instead";
        return Err(invalid("this route needs a WebSocket request").hint(hint).into());
    };
    // The connection goes on as a WebSocket, and is another one to the server.
    let connected = process.connect();
    tokio::spawn(async move {
        let socket = websocket::open(upgrade, app.messages.clone(), MOST_MESSAGE_BYTES).await;
        // The client may have gone before.
        if let Some(socket) = socket {
            let over = app.grant.clone().until_over();
            let only_writer = query.only_writer == Some(true);
            tokio::select! {
                () = serve(&app, socket, (process, follower), only_writer) => {}
                // The client is cut off in the middle of whatever it does.
                () = over => {}
            }
        }
        drop((permit, connected));
    });
    Ok(response)
}

/// Until all output is given or the client has gone. The process does not notice.
async fn serve(
    app: &App,
    socket: WebSocket,
    (process, follower): (Process, Follower),
    only_writer: bool,
) {
    let (sink, mut stream) = socket.split();
    let accepted = process.write(Vec::new(), None).await.ok();
    let accepted = accepted.map(|written| written.accepted);
    let (client, holders) = (process.keyboard_client(), process.keyboard_changes());
    let offset = accepted.filter(|_| only_writer);
    let mut input = AttachInput { app: app.clone(), process, offset, client, keyboard: None };
    // One at a time: a client that does not hear of one is not asked for the next.
    let (refusals, refused) = mpsc::channel(1);
    let hello = AttachNotice::Attached { cursor: follower.place().cursor, accepted };
    let keyboard = KeyboardNotices::new(holders, client);
    let mut giving = Giving { sink, follower, refused, keyboard };
    let not_taken = {
        let mut taking = pin!(take(&mut stream, &mut input, refusals));
        tokio::select! {
            not_taken = taking.as_mut() => not_taken,
            () = giving.run(hello) => {
                // One that says nothing is left.
                _ = timeout(FAREWELL, taking).await;
                None
            }
        }
    };
    if let Some(error) = not_taken {
        // A client that neither reads nor stops is left.
        _ = timeout(FAREWELL, giving.refuse_the_rest(stream, error)).await;
    }
}

/// What goes to the client: what comes of the output, and what it is refused.
struct Giving {
    sink: SplitSink<WebSocket, Message>,
    follower: Follower,
    refused: mpsc::Receiver<Error>,
    keyboard: KeyboardNotices,
}

impl Giving {
    /// Until all is given. A message that this is dropped in is sent whole or not at all.
    async fn run(&mut self, hello: AttachNotice) {
        let mut messages = vec![notice(&hello)];
        while !messages.is_empty() {
            for message in messages {
                if self.sink.send(message).await.is_err() {
                    return;
                }
            }
            messages = self.next().await;
        }
        // The client may be gone.
        _ = self.sink.close().await;
    }

    /// Nothing when all is given.
    async fn next(&mut self) -> Vec<Message> {
        tokio::select! {
            step = self.follower.next() => match step {
                Ok(step) => step.map_or_else(Vec::new, |step| messages(&self.follower, step)),
                Err(error) => {
                    // The client is about to be gone either way.
                    _ = self.sink.send(notice(&AttachNotice::Refused { error })).await;
                    Vec::new()
                }
            },
            keyboard = self.keyboard.next() => vec![notice(&keyboard)],
            Some(error) = self.refused.recv() => vec![notice(&AttachNotice::Refused { error })],
        }
    }

    /// Says what is wrong with a message that is not taken, and hears the client out meanwhile: one
    /// that is cut off while it sends does not get to read why.
    async fn refuse_the_rest(mut self, stream: SplitStream<WebSocket>, error: Error) {
        let code = match error.code {
            ErrorCode::BodyTooLarge => CloseCode::Size,
            _ => CloseCode::Again,
        };
        let frame = CloseFrame { code, reason: error.message.clone().into() };
        for message in [notice(&AttachNotice::Refused { error }), Message::Close(Some(frame))] {
            if self.sink.send(message).await.is_err() {
                return;
            }
        }
        if let Ok(socket) = self.sink.reunite(stream) {
            let mut rest = vec![0; 64 << 10];
            let mut reader = socket.into_reader();
            while reader.read(&mut rest).await.is_ok_and(|count| count > 0) {}
        }
    }
}

fn messages(follower: &Follower, step: Step) -> Vec<Message> {
    match step {
        Step::Output(parts) => {
            let message = |bytes: &[u8]| Message::binary(bytes.to_vec());
            parts.iter().map(|part| message(follower.bytes(&part.range))).collect()
        }
        Step::Dropped(range) => {
            vec![notice(&AttachNotice::Dropped { range: to_wire::range(&range) })]
        }
        Step::Ending(ending) => {
            let ending = to_wire::ending(&ending, &follower.process);
            vec![notice(&AttachNotice::Ending { ending: Box::new(ending) })]
        }
    }
}

fn notice(notice: &AttachNotice) -> Message {
    Message::text(json_text(notice))
}

/// Does what the client says until it says no more; or until a message is not taken, nor what
/// follows, for this reason.
async fn take(
    stream: &mut SplitStream<WebSocket>,
    input: &mut AttachInput,
    refusals: mpsc::Sender<Error>,
) -> Option<Error> {
    loop {
        let done = match stream.next().await? {
            Ok(Message::Binary(bytes)) => input.write(&bytes).await,
            Ok(Message::Text(text)) => input.obey(&text).await,
            Ok(Message::Close(_)) => return None,
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => Ok(()),
            Err(error) => return websocket::told(&error),
        };
        if let Err(error) = done {
            // When all output is given nobody is told any more.
            _ = refusals.send(error).await;
        }
    }
}

struct AttachInput {
    app: App,
    process: Process,
    /// Where the next byte belongs, if nobody else writes.
    offset: Option<u64>,
    client: KeyboardClient,
    /// If this client has it.
    keyboard: Option<Keyboard>,
}

impl AttachInput {
    async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let keyboard = self.keyboard.as_ref();
        write::write_when_there_is_room(&self.process, keyboard, bytes, self.offset).await?;
        self.offset = self.offset.map(|offset| offset + bytes.len() as u64);
        Ok(())
    }

    async fn obey(&mut self, text: &str) -> Result<(), Error> {
        match input::words("message", text.as_bytes())? {
            AttachRequest::Resize { rows, cols } => {
                let size = ResizeRequest { rows, cols };
                control::resize_by(&self.process, self.keyboard.as_ref(), &size).await
            }
            AttachRequest::CloseStdin => self.close().await,
            AttachRequest::TakeKeyboard { name } => self.take_keyboard(name),
            AttachRequest::GiveBackKeyboard => self.give_back_keyboard().await,
            AttachRequest::SecretInput { on } => {
                let keyboard = self.keyboard.as_ref().ok_or_else(not_yours)?;
                keyboard.set_secret(on).await.map_err(|error| refusal::from_keyboard(&error))
            }
        }
    }

    async fn close(&self) -> Result<(), Error> {
        let closed = match &self.keyboard {
            Some(keyboard) => keyboard.close(self.offset).await,
            None => self.process.write_and_close(Vec::new(), self.offset).await,
        };
        closed.map(drop).map_err(|error| refusal::from_write_to(&self.process, error))
    }

    fn take_keyboard(&mut self, name: Option<String>) -> Result<(), Error> {
        if self.keyboard.is_some() {
            return Ok(());
        }
        let most = AttachRequest::LONGEST_NAME;
        if name.as_ref().is_some_and(|name| name.is_empty() || name.len() > most) {
            return Err(invalid(format!("`name` must have between 1 and {most} bytes")));
        }
        let usual = if self.app.grant.page.is_some() { "a person" } else { "a client" };
        let name = name.unwrap_or_else(|| usual.into());
        let keyboard = self.process.take_keyboard(self.client, name);
        self.keyboard = Some(keyboard.map_err(|error| refusal::from_keyboard(&error))?);
        Ok(())
    }

    /// If it was handed over, this is all that the page was for: the person is done, also if another client
    /// has the keyboard.
    async fn give_back_keyboard(&mut self) -> Result<(), Error> {
        let had = self.keyboard.take().is_some();
        if self.app.grant.hand_over().is_some() {
            return links::done(&self.app).await;
        }
        if had { Ok(()) } else { Err(not_yours()) }
    }
}

fn not_yours() -> Error {
    Error::new(ErrorCode::KeyboardNotYours, "this client does not have the keyboard")
        .hint("take it first with `take_keyboard`")
}

#[cfg(test)]
mod tests {
    use lastbyte_testkit::{Corpus, fuzz};

    use super::*;

    /// A message that is taken says the same when it is written again, and one that is refused is the client's fault.
    #[test]
    fn no_message_does_harm() {
        let name = Some("Ada".to_owned());
        let made = [
            AttachRequest::Resize { rows: 24, cols: 80 },
            AttachRequest::CloseStdin,
            AttachRequest::TakeKeyboard { name },
            AttachRequest::GiveBackKeyboard,
            AttachRequest::SecretInput { on: true },
        ];
        let made = made.map(|request| json_text(&request).into_bytes()).to_vec();
        let words = [
            "\"kind\":",
            "\"name\":",
            "\"rows\":",
            "null",
            "65536",
            "-1",
            "\\ud800",
            "[",
            "{",
            ",",
        ];
        fuzz(Corpus { name: "attach", made, words: &words }, |text| {
            let asked = input::words::<AttachRequest>("message", text);
            match asked {
                Ok(asked) => {
                    let again =
                        input::words::<AttachRequest>("message", json_text(&asked).as_bytes());
                    assert_eq!(again.as_ref(), Ok(&asked));
                    Ok(std::mem::discriminant(&asked))
                }
                Err(error) => {
                    assert_eq!(error.code, ErrorCode::InvalidRequest);
                    Err(error.message.chars().take(40).collect::<String>())
                }
            }
        });
    }
}
