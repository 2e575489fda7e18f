//! The lane of one command: it is started, followed, and its requests are taken one after the other.
//!
//! ```text
//!  starting ──▶ running, draining ──▶ over: the last message, and the requests nobody has taken
//! ```
//!
//! Should it panic, its command is stopped and whoever asked is told so; should it be dropped, its
//! command is stopped too.
//!
//! Requests that come while it is being started wait here. Those that are left when it is over go
//! back to the connection, which judges them again: the id is free then.

use std::pin::pin;
use std::sync::Arc;

use lastbyte_engine::{Cause, Process, StartError, Stdin, StopPolicy, Verb};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};

use super::door::Door;
use super::envelope::{RequestId, failure, success};
use super::family::Family;
use super::fault::Fault;
use super::following::{Deltas, Followed, Following, Sink};
use super::launching::{Delivery, Wanted, why_not};
use super::leash::Leash;
use super::methods::{Control, Handshake, Target};
use super::outbox::{Held, Outbox, Parcel};
use super::outcome::{EXITED, exec_answer, exited};
use super::running::{Input, Running};
use super::unwinding::{Panicked, unless_it_panics};
use crate::verbs::refusal::with_cause;

/// A request that waits for its turn.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) id: RequestId,
    pub(super) what: What,
    pub(super) held: Held,
}

/// What it wants of the lane's id.
#[derive(Debug)]
pub(super) enum What {
    Begin(Box<Wanted>),
    Control(Target, Control),
}

/// Requests on their way to a lane. Unbounded: their bytes are held by the outbox.
pub(super) type Requests = mpsc::UnboundedReceiver<Queued>;

/// What a lane has.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) door: Door,
    pub(super) outbox: Outbox,
    pub(super) handshake: Arc<Handshake>,
    pub(super) requests: Requests,
    /// The request that is being dealt with.
    pub(super) asked: Option<RequestId>,
    /// Its sender goes away when the connection closes.
    pub(super) open: watch::Receiver<()>,
}

/// What is left of a lane.
#[derive(Debug)]
pub(super) struct Over {
    pub(super) requests: Requests,
    /// Sent when the id is free.
    pub(super) last: Option<Parcel>,
    pub(super) process: Option<Process>,
}

impl Lane {
    /// `slot` counts as a request that is not started yet.
    pub(super) async fn run(
        mut self,
        id: RequestId,
        wanted: Wanted,
        slot: Option<OwnedSemaphorePermit>,
    ) -> Over {
        let mut leash = Leash::new(self.door.engine().clone(), wanted.launch.clone());
        let started = self.start(&mut leash, &wanted).await;
        drop(slot);
        match started {
            Ok(Some(process)) => {
                let attended = unless_it_panics(self.attend(&id, &wanted, &process)).await;
                let over = self.conclude(&id, &wanted, process, attended).await;
                leash.let_go();
                over
            }
            Ok(None) => Over { requests: self.requests, last: None, process: None },
            Err(fault) => {
                let last = Some(self.outbox.answer_parcel(failure(&id, &fault)));
                Over { requests: self.requests, last, process: None }
            }
        }
    }

    async fn conclude(
        mut self,
        id: &RequestId,
        wanted: &Wanted,
        process: Process,
        attended: Result<Option<Parcel>, Panicked>,
    ) -> Over {
        let last = match attended {
            Ok(last) => last,
            Err(Panicked) => {
                // Nobody would see to it any more.
                process.stop_by(StopPolicy::KILL, Verb::Stop).await;
                self.last_words(id, wanted, &process).await
            }
        };
        Over { requests: self.requests, last, process: Some(process) }
    }

    /// What the client hears after a panic: of all that is left to be answered.
    async fn last_words(
        &mut self,
        id: &RequestId,
        wanted: &Wanted,
        process: &Process,
    ) -> Option<Parcel> {
        if let Some(asked) = self.asked.take() {
            self.outbox.answer(failure(&asked, &Fault::task_failed()));
        }
        let text = match &wanted.target {
            Some(Target::Process(_)) if !self.handshake.wants(EXITED) => return None,
            Some(Target::Process(handle)) => {
                exited(handle, &Followed::without_output(process.ended().await))
            }
            Some(Target::Command(_)) | None => failure(id, &Fault::task_failed()),
        };
        Some(self.outbox.answer_parcel(text))
    }

    /// `None` when the connection closed meanwhile: then nothing stays.
    async fn start(
        &mut self,
        leash: &mut Leash,
        wanted: &Wanted,
    ) -> Result<Option<Process>, Fault> {
        let started = tokio::select! {
            started = leash.started() => started,
            () = closed(&mut self.open) => return Ok(None),
        };
        match started {
            Ok(process) => Ok(Some(process)),
            Err(StartError::Sandbox(error)) => {
                Err(wanted.family.not_sandboxed(&with_cause(&error)))
            }
            Err(error) => {
                let why = why_not(&error, &wanted.launch, &self.door);
                Err(wanted.family.failed_to_spawn(&why))
            }
        }
    }

    /// The message that ends it all, if there is one.
    async fn attend(
        &mut self,
        id: &RequestId,
        wanted: &Wanted,
        process: &Process,
    ) -> Option<Parcel> {
        if wanted.family == Family::Process {
            self.outbox.answer(success(id, &json!({})));
        }
        let mut running = self.running(wanted, process);
        let mut last = pin!(self.last_message(id.clone(), wanted, process));
        loop {
            tokio::select! {
                last = &mut last => return last,
                Some(queued) = self.requests.recv() => {
                    self.asked = Some(queued.id.clone());
                    take(running.as_mut(), queued).await;
                    self.asked = None;
                }
                () = closed(&mut self.open) => return match ended_before_close(process).await {
                    true => last.await,
                    false => None,
                },
            }
        }
    }

    fn running(&self, wanted: &Wanted, process: &Process) -> Option<Running> {
        Some(Running {
            process: process.clone(),
            target: wanted.target.clone()?,
            control: wanted.control,
            streams: wanted.launch.streams,
            input: match wanted.launch.stdin {
                Stdin::Closed | Stdin::Given(_) => Input::NotEnabled,
                Stdin::Open => Input::Open,
            },
            outbox: self.outbox.clone(),
            terminated: false,
        })
    }

    /// Follows the output to its end; then the message that ends it all, if the client wants one.
    fn last_message(
        &self,
        id: RequestId,
        wanted: &Wanted,
        process: &Process,
    ) -> impl Future<Output = Option<Parcel>> + use<> {
        let following = Following::new(process, wanted.output, self.sink(wanted));
        let wants_exited = self.handshake.wants(EXITED);
        let (outbox, target) = (self.outbox.clone(), wanted.target.clone());
        async move {
            let followed = following.until_ended().await;
            let text = match target {
                Some(Target::Process(handle)) if wants_exited => exited(&handle, &followed),
                Some(Target::Process(_)) => return None,
                Some(Target::Command(_)) | None => exec_answer(&id, &followed),
            };
            Some(outbox.output_parcel(text).await)
        }
    }

    fn sink(&self, wanted: &Wanted) -> Sink {
        match (wanted.output.delivery, &wanted.target) {
            (Delivery::Buffered, _) => Sink::Text(Default::default()),
            (Delivery::Streamed, Some(target))
                if self.handshake.wants(target.family().output_delta()) =>
            {
                Sink::Deltas(Deltas::new(self.outbox.clone(), target))
            }
            (Delivery::Streamed, _) => Sink::Nowhere,
        }
    }
}

/// Answers one request about a command that was started.
async fn take(running: Option<&mut Running>, queued: Queued) {
    // Who has no id is never asked for anything.
    let Some(running) = running else { return };
    let Queued { id, what, held } = queued;
    match what {
        What::Control(_, control) => running.obey(&id, control).await,
        What::Begin(_) => {
            let fault = running.target.family().duplicate(running.target.id());
            running.outbox.answer(failure(&id, &fault));
        }
    }
    drop(held);
}

/// Stops a command because its connection is closed; whether it had come to its end before.
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
    use crate::doors::codex::door::{self, Streaming};
    use crate::doors::codex::envelope::Request;
    use crate::doors::codex::launching::Output;

    fn id_of(text: &str) -> RequestId {
        Request::parse(format!(r#"{{"id":"{text}","method":"m"}}"#).as_bytes()).unwrap().id
    }

    fn wanted(target: Target, anchor: &Anchor) -> Wanted {
        let mut launch = Launch::argv(script("stubborn-tree 3 then hold"));
        let (name, value) = anchor.env();
        launch.env.push(EnvEdit::Set(name.into(), value));
        let output = Output { cap: None, delivery: Delivery::Buffered };
        let family = target.family();
        Wanted { family, target: Some(target), launch, output, control: Streaming::Supported }
    }

    fn door(folder: &tempfile::TempDir) -> Door {
        let engine = Engine::new(Settings::new(folder.path())).unwrap();
        Door::new(engine, door::Settings::new(folder.path(), folder.path()))
    }

    /// A lane on a connection that stays open, with a tree of four.
    fn lane(door: &Door, anchor: &Anchor) -> impl Future<Output = Over> + Send + 'static {
        let (handshake, (outbox, _)) = (Arc::new(Handshake::default()), Outbox::new());
        let ((sender, requests), (opened, open)) = (mpsc::unbounded_channel(), watch::channel(()));
        let lane = Lane { door: door.clone(), outbox, handshake, requests, asked: None, open };
        let wanted = wanted(Target::Command("p".into()), anchor);
        async move {
            let _stay = (sender, opened);
            lane.run(id_of("begun"), wanted, None).await
        }
    }

    /// As by a connection that has waited long enough for its client.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_lane_that_is_dropped_takes_its_command_with_it() {
        let (folder, anchor) = (tempfile::tempdir().unwrap(), Anchor::listen());
        let door = door(&folder);
        let running = tokio::spawn(lane(&door, &anchor));
        anchor.wait_for(4);
        running.abort();
        anchor.wait_for_at_most(0);
    }

    #[tokio::test]
    async fn a_lane_that_is_dropped_while_it_starts_takes_its_command_with_it() {
        let (folder, anchor) = (tempfile::tempdir().unwrap(), Anchor::listen());
        let door = door(&folder);
        let mut starting = Box::pin(lane(&door, &anchor));
        let mut context = Context::from_waker(Waker::noop());
        assert!(starting.as_mut().poll(&mut context).is_pending());
        drop(starting);
        let all = || door.engine().list(&Filter::default(), None, 1).processes;
        let cause = timeout(PATIENCE, async {
            while all().is_empty() {
                tokio::task::yield_now().await;
            }
            all()[0].0.ended().await.cause
        });
        assert_eq!(cause.await.unwrap(), Cause::Stopped { verb: Verb::Close, escalated: false });
    }

    /// What a client hears of a lane that panics while its command runs and two requests wait.
    async fn heard_after_a_panic(target: Target) -> Vec<String> {
        let (folder, anchor) = (tempfile::tempdir().unwrap(), Anchor::listen());
        let door = door(&folder);
        let wanted = wanted(target.clone(), &anchor);
        let process = door.engine().start(wanted.launch.clone()).await.unwrap().process;
        anchor.wait_for(4);
        let (outbox, mut parcels) = Outbox::new();
        let (sender, requests) = mpsc::unbounded_channel();
        let what = What::Control(target, Control::Terminate);
        sender.send(Queued { id: id_of("waits"), what, held: outbox.hold(0) }).unwrap();
        let handshake = Arc::new(Handshake::default());
        let (_open, open) = watch::channel(());
        let asked = Some(id_of("asked"));
        let lane = Lane { door, outbox, handshake, requests, asked, open };
        let attended = unless_it_panics(async { panic!("on purpose") }).await;
        let mut over = lane.conclude(&id_of("begun"), &wanted, process, attended).await;
        anchor.wait_for_at_most(0);
        assert_eq!(over.requests.try_recv().unwrap().id, id_of("waits"));
        let sent = std::iter::from_fn(|| parcels.try_recv().ok()).map(|parcel| parcel.text);
        sent.chain(over.last.map(|parcel| parcel.text)).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_lane_that_panics_stops_its_command_and_answers() {
        let heard = heard_after_a_panic(Target::Command("p".into())).await;
        let failed = Fault::task_failed();
        assert_eq!(heard, [failure(&id_of("asked"), &failed), failure(&id_of("begun"), &failed)]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_lane_that_panics_tells_the_end_of_what_was_answered_before() {
        let heard = heard_after_a_panic(Target::Process("p".into())).await;
        assert_eq!(heard[0], failure(&id_of("asked"), &Fault::task_failed()));
        let exited = r#"{"method":"process/exited","params":{"processHandle":"p","exitCode":137,"#;
        assert!(heard[1].starts_with(exited), "{heard:?}");
    }
}
