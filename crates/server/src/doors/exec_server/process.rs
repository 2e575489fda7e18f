//! The task of one process: starts it, numbers its events and handles the requests about it, one after
//! the other.
//!
//! ```text
//!  starting ──▶ started: running, exited, closed ──▶ a while later: over, and the id is free
//!      └──▶ over: it could not be started
//! ```

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use lastbyte_engine::{
    Engine, Launch, Phase, Process, Signal, StartError, StopPolicy, Verb, WriteError,
};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::door::Times;
use super::record::Record;
use super::write_ids::WriteIds;
use crate::doors::rpc::kill_on_drop::KillOnDrop;
use crate::doors::rpc::send_queue::{SendQueue, Share};
use crate::doors::rpc::{Fault, RequestId, failure, success};
use crate::verbs::refusal::with_cause;

/// What a session knows of a process.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) state: watch::Receiver<State>,
    /// Unbounded: the bytes of requests are counted by the send queue.
    pub(super) requests: mpsc::UnboundedSender<Request>,
}

#[derive(Debug, Clone)]
pub(super) enum State {
    Starting,
    Started(Arc<Record>),
    Over,
}

/// A request that waits for its turn.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: RequestId,
    pub(super) action: Action,
    /// Of the connection that it came from.
    pub(super) answers: SendQueue,
    pub(super) bytes: Share,
}

#[derive(Debug)]
pub(super) enum Action {
    Write { bytes: Vec<u8>, write_id: String },
    Interrupt,
    Terminate,
}

/// A task that is over.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) id: String,
    pub(super) process: Option<Process>,
}

impl Entry {
    pub(super) fn is_over(&self) -> bool {
        matches!(*self.state.borrow(), State::Over)
    }

    /// The process, if it is started.
    pub(super) fn started(&self) -> Option<Arc<Record>> {
        match &*self.state.borrow() {
            State::Started(record) => Some(Arc::clone(record)),
            State::Starting | State::Over => None,
        }
    }

    /// The process, once it is started; `None` if it never is, or not any more. Cancel-safe.
    pub(super) async fn record(mut state: watch::Receiver<State>) -> Option<Arc<Record>> {
        let started = state.wait_for(|state| !matches!(state, State::Starting)).await;
        match started.as_deref() {
            Ok(State::Started(record)) => Some(Arc::clone(record)),
            Ok(State::Starting | State::Over) | Err(_) => None,
        }
    }
}

/// What started a process.
#[derive(Debug)]
pub(super) struct StartRequest {
    pub(super) id: RequestId,
    /// Of the connection that it came from.
    pub(super) answers: SendQueue,
    /// Kept until the process has started.
    pub(super) _starting: Share,
}

/// The task of a process that is to be started.
#[derive(Debug)]
pub(super) struct ProcessTask {
    engine: Engine,
    id: String,
    times: Times,
    state: watch::Sender<State>,
    requests: mpsc::UnboundedReceiver<Request>,
}

impl ProcessTask {
    pub(super) fn new(engine: Engine, id: String, times: Times) -> (Self, Entry) {
        let (state, known) = watch::channel(State::Starting);
        let (sender, requests) = mpsc::unbounded_channel();
        (Self { engine, id, times, state, requests }, Entry { state: known, requests: sender })
    }

    pub(super) async fn run(mut self, launch: Launch, request: StartRequest) -> Finished {
        let is_confined = launch.sandbox.confines();
        let mut command = KillOnDrop::new(self.engine.clone(), launch);
        let process = command.started().await;
        let Some(record) = self.answer_start(request, process, is_confined) else {
            return Finished { id: self.id, process: None };
        };
        if AssertUnwindSafe(self.serve(&record)).catch_unwind().await.is_err() {
            record.process.stop_by(StopPolicy::KILL, Verb::Stop).await;
            record.end_after_panic();
        }
        self.state.send_replace(State::Over);
        self.answer_rest();
        command.disarm();
        let process = record.process.clone();
        // A log that is still open is removed with the state folder.
        _ = self.engine.forget(process.id());
        Finished { id: self.id, process: Some(process) }
    }

    /// The way to the client is not kept: the connection may end before the process does.
    fn answer_start(
        &mut self,
        request: StartRequest,
        started: Result<Process, StartError>,
        is_confined: bool,
    ) -> Option<Arc<Record>> {
        let StartRequest { id, answers, .. } = request;
        match started {
            Ok(process) => {
                let record = Arc::new(Record::new(process));
                let sandbox = if is_confined { "linuxSeccomp" } else { "none" };
                let answer = json!({ "processId": self.id, "sandboxType": sandbox });
                answers.answer(success(&id, &answer));
                // Only after the answer, so that no event comes before it.
                self.state.send_replace(State::Started(Arc::clone(&record)));
                Some(record)
            }
            Err(error) => {
                // The id is free before the client hears of it.
                self.state.send_replace(State::Over);
                answers.answer(failure(&id, &not_started(&error)));
                self.answer_rest();
                None
            }
        }
    }

    /// Until the process is forgotten.
    async fn serve(&mut self, record: &Arc<Record>) {
        let mut controlled =
            Controlled { record: Arc::clone(record), write_ids: WriteIds::default() };
        let mut followed = pin!(record.follow());
        loop {
            tokio::select! {
                () = &mut followed => break,
                Some(request) = self.requests.recv() => controlled.answer(request).await,
            }
        }
        let until = Instant::now() + self.times.remembered;
        loop {
            tokio::select! {
                () = sleep_until(until) => return,
                Some(request) = self.requests.recv() => controlled.answer(request).await,
            }
        }
    }

    /// Answers what came too late as if there had never been such a process.
    fn answer_rest(&mut self) {
        self.requests.close();
        while let Ok(Request { id, action, answers, .. }) = self.requests.try_recv() {
            answers.answer(success(&id, &action.without_process()));
        }
    }
}

impl Action {
    /// The answer when there is no such process.
    pub(super) fn without_process(&self) -> serde_json::Value {
        match self {
            Self::Write { .. } => json!({ "status": "unknownProcess" }),
            Self::Interrupt => json!({}),
            Self::Terminate => json!({ "running": false }),
        }
    }
}

/// A process that was started, as requests about it see it.
#[derive(Debug)]
struct Controlled {
    record: Arc<Record>,
    write_ids: WriteIds,
}

impl Controlled {
    /// Waits for the process's owner, never for the process.
    async fn answer(&mut self, request: Request) {
        let Request { id, action, answers, bytes } = request;
        answers.answer(match action {
            Action::Write { bytes, write_id } => match self.write(bytes, &write_id).await {
                Ok(status) => success(&id, &json!({ "status": status })),
                Err(fault) => failure(&id, &fault),
            },
            Action::Interrupt => {
                // Nobody may be left to interrupt.
                _ = self.record.process.signal(Signal::INT).await;
                success(&id, &json!({}))
            }
            Action::Terminate => success(&id, &json!({ "running": self.terminate() })),
        });
        drop(bytes);
    }

    async fn write(&mut self, bytes: Vec<u8>, write_id: &str) -> Result<&'static str, Fault> {
        if self.write_ids.contains(write_id) {
            return Ok("accepted");
        }
        match self.record.process.write(bytes, None).await {
            Ok(_) => {
                self.write_ids.insert(write_id);
                Ok("accepted")
            }
            Err(
                WriteError::NotOpen | WriteError::Closed | WriteError::Broken | WriteError::Exited,
            ) => Ok("stdinClosed"),
            Err(
                error @ (WriteError::QueueFull { .. }
                | WriteError::Gap { .. }
                | WriteError::KeyboardTaken),
            ) => Err(Fault::internal(error.to_string())),
        }
    }

    /// Kills a process that runs, with its whole tree. Once it has exited, what it left in the background
    /// is spared: clients terminate every process after its end.
    fn terminate(&self) -> bool {
        let process = self.record.process.clone();
        let is_running = matches!(process.snapshot().phase, Phase::Running);
        if is_running {
            let unproved = Share::new(&self.record.stops, 1);
            tokio::spawn(async move {
                process.stop_by(StopPolicy::KILL, Verb::Stop).await;
                drop(unproved);
            });
        }
        is_running
    }
}

fn not_started(error: &StartError) -> Fault {
    Fault::internal(match error {
        StartError::Sandbox(_) => {
            format!("failed to prepare process sandbox: {}", with_cause(error))
        }
        error => with_cause(error),
    })
}
