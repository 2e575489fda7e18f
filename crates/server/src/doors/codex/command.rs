//! The task of one command: starts it, passes on its output and handles the requests about it, one
//! after the other.
//!
//! ```text
//!  starting ──▶ running, draining ──▶ finished: the last message, and the requests still waiting
//! ```
//!
//! If the task panics, its command is stopped and the client gets an error; if it is dropped, its
//! command is stopped too.
//!
//! Requests that come during the start wait. Those that are left at the end go back to the
//! connection, which dispatches them again: the id is free then.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::thread;

use futures_util::FutureExt;
use lastbyte_engine::{Cause, Process, StopPolicy, Verb};
use serde_json::json;
use tokio::sync::{mpsc, watch};

use super::control::Controlled;
use super::door::Door;
use super::initialize::Handshake;
use super::launch::Start;
use super::methods::{Action, Api, Target};
use super::output::{Collected, Deltas, Forwarder, Sink};
use super::result::{EXITED, exec_answer, exited};
use crate::doors::rpc::kill_on_drop::KillOnDrop;
use crate::doors::rpc::send_queue::{QueuedMessage, SendQueue, Share};
use crate::doors::rpc::{Fault, RequestId, failure, success};

/// A request that waits for its turn. Boxed on its way: a channel has space for 32 from the start, for
/// every command.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) id: RequestId,
    pub(super) target: Target,
    pub(super) action: Action,
    pub(super) bytes: Share,
}

#[derive(Debug)]
pub(super) struct CommandTask {
    pub(super) door: Door,
    pub(super) send_queue: SendQueue,
    pub(super) handshake: Arc<Handshake>,
    /// The request that started it.
    pub(super) id: RequestId,
    pub(super) target: Target,
    /// Unbounded: their bytes are counted by the send queue.
    pub(super) requests: mpsc::UnboundedReceiver<Box<PendingRequest>>,
    /// The request that is being handled.
    pub(super) answering: Option<RequestId>,
    /// Its sender is dropped when the connection closes.
    pub(super) open: watch::Receiver<()>,
}

/// What is left of a task.
#[derive(Debug)]
pub(super) struct FinishedCommand {
    pub(super) requests: mpsc::UnboundedReceiver<Box<PendingRequest>>,
    /// Sent when the id is free.
    pub(super) last: Option<QueuedMessage>,
    pub(super) process: Option<Process>,
}

impl CommandTask {
    /// The share is kept until the command has started, the launch until it cannot fail any more: a
    /// task is as large as the most that it has at a time, as long as its command runs.
    pub(super) async fn run(mut self, start: Box<Start>, starting: Share) -> FinishedCommand {
        let Start { ref launch, cap, streamed } = *start;
        let mut command = KillOnDrop::new(self.door.engine.clone(), launch.clone());
        let started = tokio::select! {
            started = command.started() => Some(started),
            () = closed(&mut self.open) => None,
        };
        drop(starting);
        let last = match started {
            Some(Ok(process)) => {
                drop(start);
                let serve = self.serve((cap, streamed), &process);
                let served = AssertUnwindSafe(serve).catch_unwind().await;
                let finished = self.finish(process, served).await;
                command.disarm();
                return finished;
            }
            Some(Err(error)) => {
                let fault = self.target.api.not_started(&error, launch, &self.door);
                Some(self.send_queue.answer_message(failure(&self.id, &fault)))
            }
            // Dropping `command` kills it.
            None => None,
        };
        FinishedCommand { requests: self.requests, last, process: None }
    }

    async fn finish(
        mut self,
        process: Process,
        served: thread::Result<Option<QueuedMessage>>,
    ) -> FinishedCommand {
        let last = match served {
            Ok(last) => last,
            Err(_) => {
                Box::pin(process.stop_by(StopPolicy::KILL, Verb::Stop)).await;
                self.answer_after_panic(&process).await
            }
        };
        FinishedCommand { requests: self.requests, last, process: Some(process) }
    }

    /// Answers everything that the panic left without an answer.
    async fn answer_after_panic(&mut self, process: &Process) -> Option<QueuedMessage> {
        if let Some(id) = self.answering.take() {
            self.send_queue.answer(failure(&id, &Fault::task_failed()));
        }
        let text = match self.target.api {
            Api::Process if !self.handshake.wants(EXITED) => return None,
            Api::Process => exited(&self.target, &Collected::without_output(process.ended().await)),
            Api::CommandExec => failure(&self.id, &Fault::task_failed()),
        };
        Some(self.send_queue.answer_message(text))
    }

    /// Until the command has ended, or the connection is closed; then the last message, if there is
    /// one.
    async fn serve(
        &mut self,
        output: (Option<u64>, bool),
        process: &Process,
    ) -> Option<QueuedMessage> {
        if self.target.api == Api::Process {
            self.send_queue.answer(success(&self.id, &json!({})));
        }
        let mut last = pin!(self.last_message(output, process));
        let mut controlled = Controlled::new(process, &self.target);
        loop {
            tokio::select! {
                last = &mut last => return last,
                Some(request) = self.requests.recv() => {
                    let PendingRequest { id, action, bytes, .. } = *request;
                    self.answering = Some(id.clone());
                    self.send_queue.answer(match Box::pin(controlled.handle(action)).await {
                        Ok(()) => success(&id, &json!({})),
                        Err(fault) => failure(&id, &fault),
                    });
                    self.answering = None;
                    drop(bytes);
                }
                () = closed(&mut self.open) => {
                    let ended = Box::pin(ended_before_close(process)).await;
                    return if ended { last.await } else { None };
                }
            }
        }
    }

    /// Passes on the output to its end; then the last message, if the client wants one.
    fn last_message(
        &self,
        (cap, streamed): (Option<u64>, bool),
        process: &Process,
    ) -> impl Future<Output = Option<QueuedMessage>> + use<> {
        let forwarder = Forwarder::new(process, cap, self.sink(streamed));
        let wants_exited = self.handshake.wants(EXITED);
        let (id, target) = (self.id.clone(), self.target.clone());
        let send_queue = self.send_queue.clone();
        async move {
            let collected = forwarder.until_ended().await;
            let text = match target.api {
                Api::Process if !wants_exited => return None,
                Api::Process => exited(&target, &collected),
                Api::CommandExec => exec_answer(&id, &collected),
            };
            Some(send_queue.output_message(text).await)
        }
    }

    fn sink(&self, streamed: bool) -> Sink {
        if !streamed {
            Sink::Result
        } else if self.handshake.wants(self.target.api.names().output_delta) {
            Sink::Deltas(Deltas::new(self.send_queue.clone(), &self.target))
        } else {
            Sink::Nowhere
        }
    }
}

/// Stops a command because its connection is closed; whether it had ended before.
async fn ended_before_close(process: &Process) -> bool {
    process.stop_by(StopPolicy::KILL, Verb::Close).await;
    !matches!(process.ended().await.cause, Cause::Stopped { verb: Verb::Close, .. })
}

/// Waits until the connection closes. Cancel-safe.
async fn closed(open: &mut watch::Receiver<()>) {
    while open.changed().await.is_ok() {}
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use lastbyte_engine::{Engine, EnvEdit, Filter, Launch, Settings};
    use lastbyte_testkit::{Anchor, PATIENCE, script};
    use tokio::time::timeout;

    use super::*;
    use crate::doors::codex::door;
    use crate::doors::codex::jsonrpc::RpcRequest;
    use crate::doors::rpc::send_queue::{self, OutgoingMessages};

    fn request_id(text: &str) -> RequestId {
        RpcRequest::parse(format!(r#"{{"id":"{text}","method":"m"}}"#).as_bytes()).unwrap().id
    }

    /// A tree of four.
    fn start(anchor: &Anchor) -> Box<Start> {
        let mut launch = Launch::argv(script("stubborn-tree 3 then hold"));
        let (name, value) = anchor.env();
        launch.env.push(EnvEdit::Set(name.into(), value));
        Box::new(Start { launch, cap: None, streamed: false })
    }

    fn door(folder: &tempfile::TempDir) -> Door {
        let engine = Engine::new(Settings::new(folder.path())).unwrap();
        Door::new(engine, door::Settings::new(folder.path(), folder.path()))
    }

    /// A task on a connection that stays open.
    fn task(
        door: &Door,
        anchor: &Anchor,
    ) -> impl Future<Output = FinishedCommand> + Send + 'static {
        let (task, requests, open) = new_task(door, Target::command(Some("p".into())));
        let start = start(anchor);
        async move {
            let _stay = (requests, open);
            task.run(start, Share::new(&watch::Sender::new(0), 1)).await
        }
    }

    fn new_task(
        door: &Door,
        target: Target,
    ) -> (
        CommandTask,
        (mpsc::UnboundedSender<Box<PendingRequest>>, OutgoingMessages),
        watch::Sender<()>,
    ) {
        let (send_queue, outgoing, _) = send_queue::channel();
        let ((sender, requests), (opened, open)) = (mpsc::unbounded_channel(), watch::channel(()));
        let (door, id) = (door.clone(), request_id("start"));
        let (handshake, answering) = (Arc::default(), None);
        let task =
            CommandTask { door, send_queue, handshake, id, target, requests, answering, open };
        (task, (sender, outgoing), opened)
    }

    /// As by a connection that has waited long enough for its client.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_task_that_is_dropped_takes_its_command_with_it() {
        let (folder, anchor) = (tempfile::tempdir().unwrap(), Anchor::listen());
        let door = door(&folder);
        let running = tokio::spawn(task(&door, &anchor));
        anchor.wait_for(4);
        running.abort();
        anchor.wait_for_at_most(0);
    }

    #[tokio::test]
    async fn a_task_that_is_dropped_while_it_starts_takes_its_command_with_it() {
        let (folder, anchor) = (tempfile::tempdir().unwrap(), Anchor::listen());
        let door = door(&folder);
        let mut starting = Box::pin(task(&door, &anchor));
        let mut context = Context::from_waker(Waker::noop());
        assert!(starting.as_mut().poll(&mut context).is_pending());
        drop(starting);
        let all = || door.engine.list(&Filter::default(), None, 1).processes;
        let cause = timeout(PATIENCE, async {
            while all().is_empty() {
                tokio::task::yield_now().await;
            }
            all()[0].0.ended().await.cause
        });
        assert_eq!(cause.await.unwrap(), Cause::Stopped { verb: Verb::Close, escalated: false });
    }

    /// What a client gets from a task that panics while its command runs, one request is being
    /// handled and one waits.
    async fn sent_after_panic(target: Target) -> Vec<String> {
        let (folder, anchor) = (tempfile::tempdir().unwrap(), Anchor::listen());
        let door = door(&folder);
        let process = door.engine.start(start(&anchor).launch).await.unwrap().process;
        anchor.wait_for(4);
        let (mut task, (sender, mut outgoing), _open) = new_task(&door, target.clone());
        let (id, bytes) = (request_id("waits"), task.send_queue.count_request(0));
        let waits = PendingRequest { id, target, action: Action::Terminate, bytes };
        sender.send(Box::new(waits)).unwrap();
        task.answering = Some(request_id("answering"));
        let served = AssertUnwindSafe(async { panic!("on purpose") }).catch_unwind().await;
        let mut finished = task.finish(process, served).await;
        anchor.wait_for_at_most(0);
        assert_eq!(finished.requests.try_recv().unwrap().id, request_id("waits"));
        let sent = std::iter::from_fn(|| outgoing.messages.try_recv().ok());
        sent.chain(finished.last).map(|message| message.text).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_task_that_panics_stops_its_command_and_answers() {
        let sent = sent_after_panic(Target::command(Some("p".into()))).await;
        let failed = |id| failure(&request_id(id), &Fault::task_failed());
        assert_eq!(sent, [failed("answering"), failed("start")]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_task_that_panics_tells_the_end_of_what_was_answered_before() {
        let sent = sent_after_panic(Target::process("p".into())).await;
        assert_eq!(sent[0], failure(&request_id("answering"), &Fault::task_failed()));
        let exited = r#"{"method":"process/exited","params":{"processHandle":"p","exitCode":137,"#;
        assert!(sent[1].starts_with(exited), "{sent:?}");
    }
}
