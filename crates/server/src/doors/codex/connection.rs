//! One client: it owns the table of ids, and what it started ends with it.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::{self, JoinError, JoinSet};

use super::closing::{Delivered, while_the_client_takes};
use super::door::Door;
use super::ended::Ended;
use super::envelope::{Request, RequestId, failure};
use super::fault::Fault;
use super::intake::Intake;
use super::lane::{Lane, Over, Queued, What};
use super::launching::Wanted;
use super::methods::{Call, Handshake, Target};
use super::outbox::Outbox;
use super::transport::Incoming;

/// A client and everything that is its own.
#[derive(Debug)]
pub(super) struct Connection<I> {
    door: Door,
    intake: Intake<I>,
    outbox: Outbox,
    delivered: Delivered,
    handshake: Option<Arc<Handshake>>,
    /// The ids that are taken, each with the way to its lane.
    lanes: HashMap<Target, mpsc::UnboundedSender<Queued>>,
    tasks: JoinSet<Over>,
    begun: HashMap<task::Id, Begun>,
    /// Lanes see that the connection is closed when this is gone.
    open: watch::Sender<()>,
    ended: Ended,
}

/// What a lane was begun for.
#[derive(Debug)]
struct Begun {
    request: RequestId,
    target: Option<Target>,
}

enum Event {
    Message(Vec<u8>),
    Over(Result<(task::Id, Over), JoinError>),
    Closed,
}

impl<I: Incoming> Connection<I> {
    pub(super) fn new(door: Door, incoming: I, outbox: Outbox, delivered: Delivered) -> Self {
        Self {
            door,
            intake: Intake::new(incoming, outbox.clone()),
            outbox,
            delivered,
            handshake: None,
            lanes: HashMap::new(),
            tasks: JoinSet::new(),
            begun: HashMap::new(),
            open: watch::Sender::new(()),
            ended: Ended::default(),
        }
    }

    /// Serves the client until it goes or the door is closed.
    pub(super) async fn run(mut self) {
        loop {
            match self.next().await {
                Event::Message(text) => self.receive(&text),
                Event::Over(over) => self.finish(over),
                Event::Closed => return self.close().await,
            }
        }
    }

    /// Every arm is cancel-safe.
    async fn next(&mut self) -> Event {
        tokio::select! {
            Some(over) = self.tasks.join_next_with_id() => Event::Over(over),
            message = self.intake.next() => message.map_or(Event::Closed, Event::Message),
            () = self.delivered.over() => Event::Closed,
            () = self.door.closed() => Event::Closed,
        }
    }

    fn receive(&mut self, text: &[u8]) {
        let Some(Request { id, method, params }) = Request::parse(text) else {
            return tracing::debug!(bytes = text.len(), "a message that wants no answer");
        };
        let handshake = self.handshake.as_deref();
        let what = match Call::judge((&method, params), &id, &self.door, handshake) {
            Err(fault) => return self.outbox.answer(failure(&id, &fault)),
            Ok(Call::Initialize(handshake, answer)) => {
                self.handshake = Some(Arc::new(handshake));
                return self.outbox.answer(answer);
            }
            Ok(Call::Begin(wanted)) => What::Begin(wanted),
            Ok(Call::Control(target, control)) => What::Control(target, control),
        };
        let held = self.outbox.hold(text.len());
        self.dispatch(Queued { id, what, held });
    }

    /// To the lane of its id, behind what waits there; without one it is begun or refused.
    fn dispatch(&mut self, queued: Queued) {
        let target = match &queued.what {
            What::Begin(wanted) => wanted.target.as_ref(),
            What::Control(target, _) => Some(target),
        };
        match (target.and_then(|target| self.lanes.get(target)), queued.what) {
            (Some(lane), what) => {
                let sent = lane.send(Queued { id: queued.id, what, held: queued.held });
                if let Err(mpsc::error::SendError(queued)) = sent {
                    self.outbox.answer(failure(&queued.id, &Fault::task_failed()));
                }
            }
            (None, What::Begin(wanted)) => self.begin(queued.id, *wanted),
            (None, What::Control(target, _)) => {
                let fault = target.family().not_active(target.id());
                self.outbox.answer(failure(&queued.id, &fault));
            }
        }
    }

    fn begin(&mut self, request: RequestId, wanted: Wanted) {
        // Without a handshake nothing is begun.
        let Some(handshake) = self.handshake.clone() else { return };
        let (sender, requests) = mpsc::unbounded_channel();
        let lane = Lane {
            door: self.door.clone(),
            outbox: self.outbox.clone(),
            handshake,
            requests,
            asked: None,
            open: self.open.subscribe(),
        };
        let target = wanted.target.clone();
        let slot = self.intake.take_slot();
        let task = self.tasks.spawn(lane.run(request.clone(), wanted, slot)).id();
        self.lanes.extend(target.clone().map(|target| (target, sender)));
        self.begun.insert(task, Begun { request, target });
    }

    /// Frees the id, then sends the last message, then sees to what still waited.
    fn finish(&mut self, over: Result<(task::Id, Over), JoinError>) {
        let task = over.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
        let begun = self.begun.remove(&task);
        if let Some(target) = begun.as_ref().and_then(|begun| begun.target.as_ref()) {
            self.lanes.remove(target);
        }
        match (over, begun) {
            (Ok((_, Over { mut requests, last, process })), _) => {
                last.into_iter().for_each(|last| self.outbox.send(last));
                process.into_iter().for_each(|process| self.ended.add(process));
                while let Ok(queued) = requests.try_recv() {
                    self.dispatch(queued);
                }
            }
            (Err(_), Some(begun)) => {
                self.outbox.answer(failure(&begun.request, &Fault::task_failed()))
            }
            (Err(_), None) => {}
        }
    }

    /// Stops all that the client has started. What had ended before is still delivered.
    async fn close(self) {
        let Self { outbox, mut delivered, mut tasks, ended, .. } = self;
        // The lanes see it by this.
        drop((self.open, self.intake, self.lanes));
        let bytes = delivered.bytes.clone();
        let mut late = Ended::default();
        let deliver = async {
            while let Some(over) = tasks.join_next().await {
                // A lane that panicked has nothing to deliver.
                let Ok(Over { last, process, .. }) = over else { continue };
                last.into_iter().for_each(|last| outbox.send(last));
                process.into_iter().for_each(|process| late.add(process));
            }
            drop(outbox);
            delivered.over().await;
        };
        tokio::join!(ended.stop(), while_the_client_takes(bytes, deliver));
        late.stop().await;
    }
}
