//! One client: it owns the table of ids, and everything it started is stopped when it closes.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::{self, JoinError, JoinSet};

use super::command::{CommandTask, FinishedCommand, PendingRequest};
use super::door::Door;
use super::initialize::Handshake;
use super::jsonrpc::RpcRequest;
use super::launch::Start;
use super::methods::{Action, Call, Target};
use crate::doors::rpc::send_queue::{Progress, SendQueue, Share, until_below};
use crate::doors::rpc::survivors::Survivors;
use crate::doors::rpc::{Fault, Incoming, RequestId, failure};

/// Commands that may wait for their start before no further request is read. Running commands do not
/// count.
const MAX_STARTING: usize = 128;

/// A client with its commands.
#[derive(Debug)]
pub(super) struct Connection<I> {
    door: Door,
    incoming: I,
    /// How many commands wait for their start.
    starting: watch::Sender<usize>,
    send_queue: SendQueue,
    progress: Progress,
    handshake: Option<Arc<Handshake>>,
    /// The ids in use, each with the requests of its command.
    commands: HashMap<Target, mpsc::UnboundedSender<Box<PendingRequest>>>,
    tasks: JoinSet<FinishedCommand>,
    /// The request that each task was started by.
    started_by: HashMap<task::Id, (RequestId, Target)>,
    /// Tasks see that the connection is closed when this is dropped.
    open: watch::Sender<()>,
    survivors: Survivors,
}

impl<I: Incoming> Connection<I> {
    pub(super) fn new(door: Door, incoming: I, send_queue: SendQueue, progress: Progress) -> Self {
        Self {
            door,
            incoming,
            starting: watch::Sender::new(0),
            send_queue,
            progress,
            handshake: None,
            commands: HashMap::new(),
            tasks: JoinSet::new(),
            started_by: HashMap::new(),
            open: watch::Sender::new(()),
            survivors: Survivors::default(),
        }
    }

    /// Serves the client until it goes or the door is closed.
    pub(super) async fn run(mut self) {
        loop {
            // No faster than requests are handled. Every await here is cancel-safe.
            let message = async {
                self.send_queue.until_requests_fit().await;
                until_below(MAX_STARTING, &self.starting).await;
                self.incoming.next().await
            };
            tokio::select! {
                Some(finished) = self.tasks.join_next_with_id() => self.finish(finished),
                message = message => match message {
                    Some(text) => self.receive(&text),
                    None => break,
                },
                () = self.send_queue.closed() => break,
                () = self.door.closed() => break,
            }
        }
        self.close().await;
    }

    fn receive(&mut self, text: &[u8]) {
        let Some(request) = RpcRequest::parse(text) else {
            return tracing::debug!(bytes = text.len(), "ignored a message that is no request");
        };
        let id = request.id.clone();
        match Call::parse(request, &self.door, self.handshake.as_deref()) {
            Err(fault) => self.send_queue.answer(failure(&id, &fault)),
            Ok(Call::Initialize(handshake, answer)) => {
                self.handshake = Some(Arc::new(handshake));
                self.send_queue.answer(answer);
            }
            Ok(Call::Command(target, action)) => {
                let bytes = self.send_queue.count_request(text.len());
                self.dispatch(Box::new(PendingRequest { id, target, action, bytes }));
            }
        }
    }

    /// To the command with this id, after its earlier requests. If there is none, the command is
    /// started or the request is refused.
    fn dispatch(&mut self, request: Box<PendingRequest>) {
        let PendingRequest { id, target, action, .. } = match self.commands.get(&request.target) {
            None => *request,
            Some(command) => {
                if let Err(mpsc::error::SendError(request)) = command.send(request) {
                    self.send_queue.answer(failure(&request.id, &Fault::task_failed()));
                }
                return;
            }
        };
        match action {
            Action::Start(start) => self.start(id, target, start),
            Action::Write { .. } | Action::Resize(_) | Action::Terminate => {
                self.send_queue.answer(failure(&id, &target.not_active()));
            }
        }
    }

    fn start(&mut self, id: RequestId, target: Target, start: Box<Start>) {
        // Without a handshake nothing is started.
        let Some(handshake) = self.handshake.clone() else { return };
        let (sender, requests) = mpsc::unbounded_channel();
        let task = CommandTask {
            door: self.door.clone(),
            send_queue: self.send_queue.clone(),
            handshake,
            id: id.clone(),
            target: target.clone(),
            requests,
            answering: None,
            open: self.open.subscribe(),
        };
        let task = self.tasks.spawn(task.run(start, Share::new(&self.starting, 1))).id();
        if target.id.is_some() {
            self.commands.insert(target.clone(), sender);
        }
        self.started_by.insert(task, (id, target));
    }

    /// Frees the id, then sends the last message, then handles the requests that still waited.
    fn finish(&mut self, finished: Result<(task::Id, FinishedCommand), JoinError>) {
        let task = finished.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
        // Each task has an entry.
        let Some((id, target)) = self.started_by.remove(&task) else { return };
        self.commands.remove(&target);
        let Ok((_, FinishedCommand { mut requests, last, process })) = finished else {
            return self.send_queue.answer(failure(&id, &Fault::task_failed()));
        };
        last.into_iter().for_each(|last| self.send_queue.send(last));
        process.into_iter().for_each(|process| self.survivors.add(process));
        while let Ok(request) = requests.try_recv() {
            self.dispatch(request);
        }
    }

    /// Stops everything the client has started. Answers of commands that ended before are still
    /// delivered.
    async fn close(self) {
        let Self { send_queue, progress, mut tasks, survivors, .. } = self;
        // The tasks see it by this.
        drop((self.open, self.incoming, self.commands));
        let mut late = Survivors::default();
        let finish_tasks = async {
            while let Some(finished) = tasks.join_next().await {
                // A task that panicked has nothing to deliver.
                let Ok(FinishedCommand { last, process, .. }) = finished else { continue };
                last.into_iter().for_each(|last| send_queue.send(last));
                process.into_iter().for_each(|process| late.add(process));
            }
            drop(send_queue);
        };
        tokio::join!(survivors.stop(), progress.finish(finish_tasks));
        late.stop().await;
    }
}
