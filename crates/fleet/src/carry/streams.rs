//! All streams of one end, and which message belongs to which.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::{Client, Message, StatusCode, Subject};
use futures_util::{Stream, StreamExt};
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::frame::Frame;
use super::stream::{Ended, Inlet, Open, Outlet, carry};

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    client: Client,
    /// Where the other ends of streams that this one opens answer, without the stream.
    inbox: String,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<String, Inlet>,
    /// Streams of others that have ended: a doubled message must not open one again.
    ended: HashSet<String>,
    by_age: VecDeque<String>,
}

/// So many streams that have ended are known. A doubled message comes soon, or never.
const MOST_ENDED: usize = 16 << 10;

/// Whether answers may go there. This end may publish where the other one may not, and must not be
/// used for that.
pub(crate) fn is_inbox(reply: &Subject) -> bool {
    reply.starts_with("_INBOX.")
}

/// Our end of a stream.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: UnixStream,
    pub(crate) ended: Ended,
}

impl Streams {
    /// For streams that others open.
    pub(crate) fn accepting(client: Client) -> Self {
        Self { client, inbox: String::new(), table: Arc::default() }
    }

    /// Answers to streams that are opened here arrive from now on.
    pub(crate) async fn new(client: Client) -> Result<Self, async_nats::SubscribeError> {
        let inbox = client.new_inbox();
        let answers = client.subscribe(format!("{inbox}.*")).await?;
        let own = Self { client, inbox, table: Arc::default() };
        tokio::spawn(own.clone().take_answers(answers));
        Ok(own)
    }

    async fn take_answers(self, mut answers: async_nats::Subscriber) {
        while let Some(message) = answers.next().await {
            let subject = message.subject.clone();
            let Some((_, key)) = subject.rsplit_once('.') else { continue };
            let Some(inlet) = self.inlet(key) else { continue };
            if message.status == Some(StatusCode::NO_RESPONDERS) {
                inlet.nobody();
            } else {
                self.give(key, &inlet, message);
            }
        }
    }

    /// A stream to the listener of this subject, which ends with this key.
    pub(crate) fn open(&self, subject: String, key: &str) -> std::io::Result<Connection> {
        let reply = Subject::from(format!("{}.{key}", self.inbox));
        let outlet = Outlet { client: self.client.clone(), to: subject.into(), reply: Some(reply) };
        let (ours, theirs) = UnixStream::pair()?;
        let ended = self.begin(key.to_owned(), theirs, outlet, (Open::Needed, None));
        Ok(Connection { socket: ours, ended })
    }

    /// Gives each message to its stream. For one that opens a stream the function is called, with its
    /// subject and the end of the stream that is ours.
    pub(crate) async fn accept(
        &self,
        mut messages: impl Stream<Item = Message> + Unpin,
        take: impl Fn(&Subject, UnixStream) -> bool,
    ) {
        while let Some(message) = messages.next().await {
            let key = message.subject.to_string();
            if let Some(inlet) = self.inlet(&key) {
                self.give(&key, &inlet, message);
            } else {
                self.begin_or_refuse(key, message, &take).await;
            }
        }
    }

    async fn begin_or_refuse(
        &self,
        key: String,
        message: Message,
        take: &impl Fn(&Subject, UnixStream) -> bool,
    ) {
        let Some(reply) = message.reply.filter(is_inbox) else { return };
        let outlet = Outlet { client: self.client.clone(), to: reply, reply: None };
        let frame = Frame::parse(message.payload);
        let was_there = self.table().ended.contains(&key);
        let taken = match &frame {
            // What is left of a stream that has ended.
            _ if was_there => return,
            Some(Frame::Close(_)) => return,
            Some(Frame::Open(_)) => UnixStream::pair()
                .ok()
                .and_then(|(ours, theirs)| take(&message.subject, ours).then_some(theirs)),
            // A node that was started again knows nothing of the streams before.
            Some(Frame::Data(..) | Frame::Ack { .. } | Frame::End(_)) | None => None,
        };
        match taken {
            Some(socket) => _ = self.begin(key, socket, outlet, (Open::Done, frame)),
            // One that does not hear it notices the silence.
            None => _ = outlet.say(&Frame::Close(0)).await,
        }
    }

    fn begin(
        &self,
        key: String,
        socket: UnixStream,
        outlet: Outlet,
        (open, first): (Open, Option<Frame>),
    ) -> Ended {
        let (inlet, inbox) = Inlet::new();
        if let Some(first) = first {
            // A first message is never too much.
            _ = inlet.take(first);
        }
        self.table().open.insert(key.clone(), inlet);
        let (over, ended) = watch::channel(None);
        let own = self.clone();
        tokio::spawn(async move {
            let why = carry(socket, inbox, outlet, open).await;
            own.forget(key);
            // Nobody need want to know.
            _ = over.send(Some(why));
        });
        ended
    }

    fn give(&self, key: &str, inlet: &Inlet, message: Message) {
        let Some(frame) = Frame::parse(message.payload) else { return };
        if let Err(why) = inlet.take(frame) {
            tracing::warn!(stream = key, ?why, "stream ended");
            self.table().open.remove(key);
        }
    }

    fn inlet(&self, key: &str) -> Option<Inlet> {
        self.table().open.get(key).cloned()
    }

    fn forget(&self, key: String) {
        let mut table = self.table();
        table.open.remove(&key);
        table.ended.insert(key.clone());
        table.by_age.push_back(key);
        if table.by_age.len() > MOST_ENDED
            && let Some(oldest) = table.by_age.pop_front()
        {
            table.ended.remove(&oldest);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
