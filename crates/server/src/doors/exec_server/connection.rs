//! One client. Its session outlives it: what is dropped with a connection is only the way to the client.

use std::ops::ControlFlow;

use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::confined_files::FileRequest;
use super::door::Door;
use super::environment::EnvironmentInfo;
use super::launch::StartParams;
use super::message::Message;
use super::methods::{Call, InitializeParams};
use super::process::{Action, Entry, Request, StartRequest};
use super::push::push;
use super::read::ReadParams;
use super::sessions::Attached;
use crate::doors::rpc::send_queue::{Progress, SendQueue, Share, until_below};
use crate::doors::rpc::{Fault, Incoming, RequestId, failure, success};

/// Processes that may wait for their start before no further request is read. Running ones do not count.
const MAX_STARTING: usize = 128;
/// Reads that may wait. For one more, the oldest is answered with what there is: no read waits behind
/// others, and no other request waits behind reads.
const MAX_WAITING_READS: u64 = 1024;

/// What the messages come over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    /// Empty lines are no messages.
    Lines,
    WebSocket,
}

/// A client that is connected.
pub(super) struct Connection<I> {
    door: Door,
    incoming: I,
    transport: Transport,
    send_queue: SendQueue,
    progress: Progress,
    /// How many processes wait for their start.
    starting: watch::Sender<usize>,
    session: Option<Attached>,
    /// The client has said so.
    is_initialized: bool,
    /// Pushes, reads and operations on files. They end with the connection.
    tasks: JoinSet<()>,
    /// How many reads were begun, and how many of the first of them are to wait no longer.
    reads: u64,
    overdue: watch::Sender<u64>,
}

impl<I: Incoming> Connection<I> {
    pub(super) fn new(
        door: Door,
        transport: Transport,
        incoming: I,
        (send_queue, progress): (SendQueue, Progress),
    ) -> Self {
        Self {
            door,
            incoming,
            transport,
            send_queue,
            progress,
            starting: watch::Sender::new(0),
            session: None,
            is_initialized: false,
            tasks: JoinSet::new(),
            reads: 0,
            overdue: watch::Sender::new(0),
        }
    }

    /// Serves the client until it goes, breaks the protocol, or the door is closed.
    pub(super) async fn run(mut self) {
        loop {
            // No faster than requests are handled. Every await here is cancel-safe.
            let message = async {
                self.send_queue.until_requests_fit().await;
                until_below(MAX_STARTING, &self.starting).await;
                self.incoming.next().await
            };
            let forgotten = async {
                match &mut self.session {
                    Some(session) => session.forget_next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = forgotten => {}
                Some(_) = self.tasks.join_next() => {}
                message = message => match message.map(|text| self.receive(&text)) {
                    Some(ControlFlow::Continue(())) => {}
                    Some(ControlFlow::Break(())) | None => break,
                },
                () = self.send_queue.closed() => break,
                () = self.door.closed() => break,
            }
        }
        // What has been answered is still delivered.
        let Self { tasks, session, send_queue, incoming, progress, .. } = self;
        drop((tasks, session, incoming));
        progress.finish(async { drop(send_queue) }).await;
    }

    fn receive(&mut self, text: &[u8]) -> ControlFlow<()> {
        if self.transport == Transport::Lines && text.trim_ascii().is_empty() {
            return ControlFlow::Continue(());
        }
        let (id, method, params) = match Message::parse(text) {
            Ok(Message::Request { id, method, params }) => (id, method, params),
            Ok(Message::Notification { method }) => return self.notified(&method),
            Ok(Message::Answer) => return ControlFlow::Break(()),
            Err(why) => {
                self.send_queue.answer(self.transport.malformed(&why));
                return ControlFlow::Continue(());
            }
        };
        let bytes = self.send_queue.count_request(text.len());
        let handled = Call::parse(&method, params).and_then(|call| self.handle(&id, call, bytes));
        if let Err(fault) = handled {
            self.send_queue.answer(failure(&id, &fault));
        }
        ControlFlow::Continue(())
    }

    /// Only `initialized` is known, and only after `initialize`.
    fn notified(&mut self, method: &str) -> ControlFlow<()> {
        if method != "initialized" || self.session.is_none() {
            return ControlFlow::Break(());
        }
        self.is_initialized = true;
        ControlFlow::Continue(())
    }

    fn handle(&mut self, id: &RequestId, call: Call, bytes: Share) -> Result<(), Fault> {
        self.check_handshake(&call)?;
        match call {
            Call::Initialize(params) => self.initialize(id, &params)?,
            Call::Info => {
                self.send_queue.answer(success(id, &EnvironmentInfo::new(&self.door.settings)));
            }
            Call::Status => self.send_queue.answer(success(id, &json!({ "status": "ready" }))),
            Call::Start(params) => self.start(id, *params)?,
            Call::Read(params) => self.read(id, params)?,
            Call::File(request) => self.perform(id, *request, bytes),
            Call::Control(process, action) => self.control(id, &process, action, bytes),
        }
        Ok(())
    }

    fn check_handshake(&self, call: &Call) -> Result<(), Fault> {
        let missing = |what, family| {
            let message = format!("client must {what} before using {family} methods");
            Err(Fault::invalid_request(message))
        };
        match call.family() {
            Some(family) if self.session.is_none() => missing("call initialize", family),
            Some(family) if !self.is_initialized => missing("send initialized", family),
            Some(_) | None => Ok(()),
        }
    }

    fn initialize(&mut self, id: &RequestId, params: &InitializeParams) -> Result<(), Fault> {
        if self.session.is_some() {
            let message = "initialize may only be sent once per connection";
            return Err(Fault::invalid_request(message));
        }
        let session = match &params.resume_session_id {
            Some(known) => self.door.sessions.resume(known)?,
            None => self.door.sessions.create(),
        };
        let info = EnvironmentInfo::new(&self.door.settings);
        let answer = json!({ "sessionId": session.id, "environmentInfo": info });
        self.send_queue.answer(success(id, &answer));
        // What happened before can be read; what happens from here on comes by itself.
        for (process, entry, last) in session.list() {
            let (state, send_queue) = (entry.state.clone(), self.send_queue.clone());
            self.tasks.spawn(push(process.clone(), state, last, send_queue));
        }
        self.session = Some(session);
        Ok(())
    }

    fn start(&mut self, id: &RequestId, params: StartParams) -> Result<(), Fault> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let process = params.process_id.clone();
        let launch = params.launch(&self.door)?;
        if session.get(&process).is_some() {
            return Err(Fault::invalid_request(format!("process {process} already exists")));
        }
        let (answers, starting) = (self.send_queue.clone(), Share::new(&self.starting, 1));
        let request = StartRequest { id: id.clone(), answers, _starting: starting };
        let state = session.start(process.clone(), launch, request);
        self.tasks.spawn(push(process, state, 0, self.send_queue.clone()));
        Ok(())
    }

    /// It does not count as a request that is being handled: otherwise many that wait would keep others
    /// from being read.
    fn read(&mut self, id: &RequestId, params: ReadParams) -> Result<(), Fault> {
        let unknown = Fault::invalid_request(format!("unknown process id {}", params.process_id));
        let Some(entry) = self.session.as_ref().and_then(|session| session.get(&params.process_id))
        else {
            return Err(unknown);
        };
        let (id, state, answers) = (id.clone(), entry.state.clone(), self.send_queue.clone());
        self.reads += 1;
        let (number, mut overdue) = (self.reads, self.overdue.subscribe());
        let last_overdue = number.saturating_sub(MAX_WAITING_READS);
        self.overdue
            .send_if_modified(|overdue| std::mem::replace(overdue, last_overdue) != last_overdue);
        self.tasks.spawn(async move {
            let enough = async {
                // The sender is dropped with the connection, and this task with it.
                _ = overdue.wait_for(|overdue| *overdue >= number).await;
            };
            let answer = match Entry::record(state).await {
                Some(record) => params.read(record, enough).await,
                None => None,
            };
            answers.answer(match answer {
                Some(answer) => success(&id, &answer),
                None => failure(&id, &unknown),
            });
        });
        Ok(())
    }

    fn perform(&mut self, id: &RequestId, request: FileRequest, bytes: Share) {
        let (id, door, answers) = (id.clone(), self.door.clone(), self.send_queue.clone());
        self.tasks.spawn(async move {
            answers.answer(match request.perform(&door).await {
                Ok(result) => success(&id, &result),
                Err(fault) => failure(&id, &fault),
            });
            drop(bytes);
        });
    }

    /// To the process with this id, after its earlier requests.
    fn control(&self, id: &RequestId, process: &str, action: Action, bytes: Share) {
        let answers = self.send_queue.clone();
        let entry = self.session.as_ref().and_then(|session| session.get(process));
        let Some(entry) = entry else {
            return answers.answer(success(id, &action.without_process()));
        };
        let request = Request { id: id.clone(), action, answers, bytes };
        if let Err(error) = entry.requests.send(request) {
            let Request { id, action, answers, .. } = error.0;
            answers.answer(success(&id, &action.without_process()));
        }
    }
}

impl Transport {
    /// The answer to what is no message. It has an id, although the message may have none.
    fn malformed(self, why: &str) -> String {
        let what = match self {
            Self::Lines => "failed to parse JSON-RPC message from stdio",
            Self::WebSocket => "failed to parse websocket JSON-RPC message",
        };
        let fault = Fault::invalid_request(format!("{what}: {why}"));
        RequestId::new(json!(-1)).map(|id| failure(&id, &fault)).unwrap_or_default()
    }
}
