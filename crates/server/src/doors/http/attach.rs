//! `GET …/attach`: input and output of a process over one WebSocket.

use std::pin::pin;
use std::time::Duration;

use axum::extract::{Request, State};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::OnUpgrade;
use lastbyte_engine::Process;
use lastbyte_wire::{
    AttachNotice, AttachQuery, AttachRequest, Error, ErrorCode, ResizeRequest, WriteQuery,
};
use tokio::io::AsyncReadExt;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Message};

use super::answer::Answer;
use super::input::{self, Target};
use crate::doors::websocket::{self, Socket, Upgrade};
use crate::from_wire::invalid;
use crate::verbs::follow::{Content, Following, News, Next};
use crate::verbs::{resize, write};
use crate::{App, to_wire};

/// A longer message is refused, and ends the connection.
const MOST_MESSAGE_BYTES: usize = 1 << 20;
/// How long the client's farewell is waited for, so that it reads ours.
const FAREWELL: Duration = Duration::from_secs(2);

pub(super) async fn attach_to_process(
    State(app): State<App>,
    Target(process): Target,
    mut request: Request,
) -> Answer {
    let query: AttachQuery = input::query(request.uri())?;
    let permit = app.begin_wait()?;
    let following = Following::bytes(&process, &query)?;
    let Some(upgrade) = Upgrade::of(&mut request) else {
        let hint = "ask with a WebSocket client; `output` and `follow` are for others";
        return Err(invalid("this is a WebSocket, and the request is for none").hint(hint).into());
    };
    let (response, upgrade) = upgrade.into_parts();
    let only_writer = query.only_writer == Some(true);
    let attachment = Attachment { process, following, only_writer, _permit: permit };
    tokio::spawn(attachment.serve(upgrade));
    Ok(response)
}

struct Attachment {
    process: Process,
    following: Following,
    only_writer: bool,
    _permit: OwnedSemaphorePermit,
}

impl Attachment {
    /// Until all output is given or the client has gone. The process does not notice.
    async fn serve(self, upgrade: OnUpgrade) {
        let Some(socket) = websocket::open(upgrade, MOST_MESSAGE_BYTES).await else { return };
        let (sink, stream) = socket.split();
        let accepted = self.process.write(Vec::new(), None).await.ok();
        let accepted = accepted.map(|written| written.accepted);
        let offset = accepted.filter(|_| self.only_writer);
        let input = Input { process: self.process, offset };
        // One at a time: a client that does not hear of one is not asked for the next.
        let (refusals, refused) = mpsc::channel(1);
        let mut taking = pin!(take(stream, input, refusals));
        let hello = AttachNotice::Attached { cursor: self.following.cursor(), accepted };
        let mut giving = Giving { sink, following: self.following, refused };
        tokio::select! {
            taken = taking.as_mut() => match taken {
                Taken::All => {}
                Taken::UpTo(stream) => {
                    // A client that neither reads nor stops is left.
                    _ = timeout(FAREWELL, giving.refuse_the_rest(stream)).await;
                }
            },
            () = giving.run(hello) => {
                // One that says nothing is left.
                _ = timeout(FAREWELL, taking).await;
            }
        }
    }
}

/// What goes to the client: what comes of the output, and what it is refused.
struct Giving {
    sink: SplitSink<Socket, Message>,
    following: Following,
    refused: mpsc::Receiver<Error>,
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
            next = self.following.next() => match next {
                Ok(next) => next.into_iter().map(message).collect(),
                Err(error) => {
                    // The client is about to be gone either way.
                    _ = self.sink.send(notice(&AttachNotice::Refused { error })).await;
                    Vec::new()
                }
            },
            Some(error) = self.refused.recv() => vec![notice(&AttachNotice::Refused { error })],
        }
    }

    /// Says what is wrong with a message that is too long, and hears the client out meanwhile: one
    /// that is cut off while it sends does not get to read why.
    async fn refuse_the_rest(mut self, stream: SplitStream<Socket>) {
        let most = MOST_MESSAGE_BYTES >> 20;
        let text = format!("a message is longer than {most} MiB, and nothing of it was taken");
        let error = Error::new(ErrorCode::BodyTooLarge, text.clone())
            .hint("send it as several messages; attach again to go on");
        let frame = CloseFrame { code: CloseCode::Size, reason: text.into() };
        for message in [notice(&AttachNotice::Refused { error }), Message::Close(Some(frame))] {
            if self.sink.send(message).await.is_err() {
                return;
            }
        }
        if let Ok(socket) = self.sink.reunite(stream) {
            let mut rest = vec![0; 64 << 10];
            let mut io = socket.into_inner();
            while io.read(&mut rest).await.is_ok_and(|count| count > 0) {}
        }
    }
}

fn message(next: Next) -> Message {
    match next.news {
        News::Output(piece) | News::Late(piece) => match piece.content {
            Content::Binary(bytes) => Message::binary(bytes),
            Content::Text(text) => Message::binary(text.into_bytes()),
        },
        News::Dropped(range) => notice(&AttachNotice::Dropped { range: to_wire::range(&range) }),
        News::Ending(ending) => notice(&AttachNotice::Ending { ending }),
    }
}

fn notice(notice: &AttachNotice) -> Message {
    Message::text(serde_json::to_string(notice).expect("words of the API are JSON"))
}

/// How far the client was heard.
enum Taken {
    /// It has said all, or is gone.
    All,
    /// A message is too long to be taken, and with it what follows.
    UpTo(SplitStream<Socket>),
}

/// Does what the client says until it says no more.
async fn take(
    mut stream: SplitStream<Socket>,
    mut input: Input,
    refusals: mpsc::Sender<Error>,
) -> Taken {
    loop {
        let message = match stream.next().await {
            Some(Ok(message)) => message,
            Some(Err(tungstenite::Error::Capacity(_))) => return Taken::UpTo(stream),
            Some(Err(_)) | None => return Taken::All,
        };
        let done = match message {
            Message::Binary(bytes) => input.write(&bytes).await,
            Message::Text(text) => input.obey(&text).await,
            Message::Close(_) => return Taken::All,
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => Ok(()),
        };
        if let Err(error) = done {
            // When all output is given nobody is told any more.
            _ = refusals.send(error).await;
        }
    }
}

struct Input {
    process: Process,
    /// Where the next byte belongs, if nobody else writes.
    offset: Option<u64>,
}

impl Input {
    async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        write::write_when_there_is_room(&self.process, bytes, self.offset).await?;
        self.offset = self.offset.map(|offset| offset + bytes.len() as u64);
        Ok(())
    }

    async fn obey(&self, text: &str) -> Result<(), Error> {
        match input::words("the message", text.as_bytes())? {
            AttachRequest::Resize { rows, cols } => {
                resize::resize(&self.process, &ResizeRequest { rows, cols }).await
            }
            AttachRequest::CloseStdin => {
                let close = WriteQuery { close: Some(true), offset: self.offset };
                write::write(&self.process, Vec::new(), &close).await.map(drop)
            }
        }
    }
}
