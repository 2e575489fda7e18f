//! Waiting for the first of several conditions.

mod input;

use std::future::pending;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use lastbyte_engine::{LogSource, PortState, Process, Snapshot};
use lastbyte_output::views::Source;
use lastbyte_output::views::search::{Seen, Watcher, compile};
use lastbyte_wire::{
    self as wire, Error, Met, WaitAnswer, WaitManyAnswer, WaitManyRequest, WaitOutcome,
};
use tokio::time::{Instant, timeout_at};

use input::{InputCondition, Looked};

use super::select::Selected;
use super::{long_read, read, refusal};
use crate::listen::HandOver;
use crate::{App, from_wire, to_wire};

/// What was asked for, checked.
#[derive(Debug, Clone)]
pub struct Conditions {
    exit: bool,
    output_past: Option<u64>,
    pattern: Option<Pattern>,
    port: Option<PortCondition>,
    input: Option<InputCondition>,
    hand_over: bool,
    silence: Option<Duration>,
    deadline: Option<Instant>,
}

/// A pattern, and how far it was looked for.
#[derive(Debug, Clone)]
struct Pattern {
    watcher: Watcher,
    at: u64,
}

/// A port, and when it is looked for next.
#[derive(Debug, Clone)]
struct PortCondition {
    number: u16,
    next_look: Instant,
}

/// How often a port is checked: the kernel does not report one that opens.
const PORT_INTERVAL: Duration = Duration::from_millis(50);

impl Conditions {
    /// Its time counts from now.
    pub fn new(wait: &wire::Wait) -> Result<Self, Error> {
        let is_true = |asked: Option<bool>| asked.filter(|asked| *asked);
        let (exit, needs_input) = (is_true(wait.exit), is_true(wait.needs_input));
        let hand_over = is_true(wait.hand_over);
        let asked = wire::Wait { exit, needs_input, hand_over, ..wait.clone() };
        if asked == (wire::Wait { from: wait.from, raw: wait.raw, ..wire::Wait::default() }) {
            let hint = "give at least one of exit, output_past, pattern, port, needs_input, hand_over, \
                        silence_ms, timeout_ms";
            return Err(from_wire::invalid("no condition to wait for").hint(hint));
        }
        // Then it can never be met any more, and nothing else is waited for.
        let until_the_end = (asked.needs_input.is_some() || asked.hand_over.is_some())
            && [asked.output_past.is_some(), asked.pattern.is_some(), asked.port.is_some()]
                .iter()
                .all(|other| !other);
        let pattern = wait.pattern.as_deref().map(compile).transpose();
        let pattern = pattern.map_err(|error| refusal::from_pattern(&error))?;
        let (at, reading) = (wait.from.unwrap_or(0), from_wire::reading(wait.raw));
        Ok(Self {
            exit: asked.exit.is_some() || until_the_end,
            output_past: wait.output_past,
            pattern: pattern.map(|regex| Pattern { watcher: Watcher::new(regex, reading), at }),
            port: wait.port.map(PortCondition::new).transpose()?,
            input: asked.needs_input.map(|_| InputCondition::new()),
            hand_over: asked.hand_over.is_some(),
            silence: wait.silence_ms.map(Duration::from_millis),
            deadline: wait
                .timeout_ms
                .and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms))),
        })
    }
}

/// As a verb: the process and what was met, of one instant.
pub async fn wait(app: &App, process: &Process, wait: &wire::Wait) -> Result<WaitAnswer, Error> {
    let conditions = Conditions::new(wait)?;
    let _permit = app.begin_wait()?;
    let (met, snapshot) = until(app, process, conditions).await?;
    Ok(WaitAnswer { process: to_wire::process(process, &snapshot), wait: met })
}

/// The same for several at once, until all of them have met a condition, or any. Which one of them
/// each has met, and what each is at the time of the answer.
pub async fn wait_many(app: &App, request: &WaitManyRequest) -> Result<WaitManyAnswer, Error> {
    let conditions = Conditions::new(&request.wait)?;
    let selected = Selected::new(app, &request.select)?.0.into_iter();
    // A process that is not there would never meet anything.
    let selected = selected.map(|found| found.map_err(|(_, error)| error));
    let selected = selected.collect::<Result<Vec<Process>, Error>>()?;
    let _permit = app.begin_wait()?;
    let mut waits: FuturesUnordered<_> = (selected.iter().enumerate())
        .map(|(nth, process)| until(app, process, conditions.clone()).map(move |met| (nth, met)))
        .collect();
    let mut met = vec![None; selected.len()];
    while let Some((nth, found)) = waits.next().await {
        met[nth] = Some(found?.0);
        if request.any == Some(true) {
            break;
        }
    }
    let now = selected.iter().zip(met).map(|(process, wait)| WaitOutcome {
        process: to_wire::process(process, &process.snapshot()),
        wait,
    });
    Ok(WaitManyAnswer { processes: now.collect() })
}

/// Returns the first condition that holds, and the snapshot in which it does.
pub async fn until(
    app: &App,
    process: &Process,
    mut asked: Conditions,
) -> Result<(Met, Snapshot), Error> {
    let (mut quiet_since, mut seen) = (Instant::now(), u64::MAX);
    loop {
        // What came at the same instant beats the clock: it is looked at after it.
        let now = Instant::now();
        let snapshot = process.snapshot();
        if snapshot.extent.len > seen {
            quiet_since = now;
        }
        seen = snapshot.extent.len;
        if let Some(met) = asked.met(app, process, &snapshot).await? {
            return Ok((met, snapshot));
        }
        let over = |time: Option<Instant>| time.is_some_and(|time| time <= now);
        if over(asked.deadline) {
            let input_unknown = asked.input.as_ref().and_then(InputCondition::unknown);
            return Ok((Met::Timeout { input_unknown }, snapshot));
        }
        let silent = asked.silence.and_then(|silence| quiet_since.checked_add(silence));
        if over(silent) {
            return Ok((Met::Silence, snapshot));
        }
        let port = asked.port.as_ref().map(|port| port.next_look);
        let input = asked.input.as_ref().map(|input| input.next_look);
        let changed = asked.changed(app, process, &snapshot);
        match [silent, asked.deadline, port, input].into_iter().flatten().min() {
            None => changed.await,
            // Which of them came is seen above.
            Some(alarm) => _ = timeout_at(alarm, changed).await,
        }
    }
}

impl Conditions {
    /// Which condition holds at this instant. Output comes before the exit it came before.
    async fn met(
        &mut self,
        app: &App,
        process: &Process,
        snapshot: &Snapshot,
    ) -> Result<Option<Met>, Error> {
        if let Some(pattern) = self.pattern.take() {
            let (pattern, seen) = pattern.look(app, process, snapshot).await?;
            if seen.is_some() {
                return Ok(seen);
            }
            self.pattern = Some(pattern);
        }
        let total = snapshot.extent.len;
        if self.output_past.is_some_and(|past| total > past) {
            return Ok(Some(Met::OutputPast { total }));
        }
        if let Some(mut input) = self.input.take() {
            match input.look(process, snapshot).await {
                Looked::Met(met) => return Ok(Some(met)),
                Looked::NotYet => self.input = Some(input),
                Looked::Never => {}
            }
        }
        if self.hand_over
            && let HandOver::Over(how) = app.pages.hand_over(process.id())
        {
            return Ok(Some(Met::HandOver { how }));
        }
        let over = !snapshot.log_open || self.exit && snapshot.ending().is_some();
        match &mut self.port {
            Some(port) => Ok(port.met(process, over, self.exit).await),
            None => Ok(over.then_some(Met::Exit)),
        }
    }

    /// Waits until something may hold that did not in this snapshot. Cancel-safe.
    async fn changed(&self, app: &App, process: &Process, last: &Snapshot) {
        if !self.hand_over {
            return self.process_changed(process, last).await;
        }
        let mut pages = app.pages.changes();
        let id = process.id().to_string();
        tokio::select! {
            _ = pages.wait_for(|kept| kept.hand_over(&id) != HandOver::Open) => {}
            () = self.process_changed(process, last) => {}
        }
    }

    async fn process_changed(&self, process: &Process, last: &Snapshot) {
        if !last.log_open {
            // Only a port can still be opened, by a survivor.
            return pending().await;
        }
        let seen = last.extent.len;
        let output = self.pattern.is_some() || self.silence.is_some() || self.output_past.is_some();
        match (self.exit, output) {
            // A thousand of these wake once, not at every chunk.
            (true, false) => _ = process.ended().await,
            (exit, true) => {
                let news = |now: &Snapshot| now.extent.len > seen || exit && now.ending().is_some();
                process.wait_for(news).await;
            }
            (false, false) => _ = process.wait_for(|_| false).await,
        }
    }
}

impl PortCondition {
    fn new(number: u16) -> Result<Self, Error> {
        match number {
            0 => Err(from_wire::invalid("`port` must be greater than 0")),
            number => Ok(Self { number, next_look: Instant::now() }),
        }
    }

    /// A port that is open beats an end. `over` is whether the process has nothing more to tell;
    /// its survivors may still open the port, unless the exit is waited for, too.
    async fn met(&mut self, process: &Process, over: bool, exit: bool) -> Option<Met> {
        let now = Instant::now();
        if now < self.next_look && !over {
            return None;
        }
        self.next_look = now + PORT_INTERVAL;
        match process.listens_on(self.number).await {
            PortState::Listening => Some(Met::Port { port: self.number }),
            PortState::Nobody => over.then_some(Met::Exit),
            PortState::NotYet => (over && exit).then_some(Met::Exit),
        }
    }
}

impl Pattern {
    /// Looks through what has come, off the runtime: a log can be long.
    async fn look(
        mut self,
        app: &App,
        process: &Process,
        snapshot: &Snapshot,
    ) -> Result<(Self, Option<Met>), Error> {
        let end = snapshot.extent.len;
        if self.at >= end {
            return Ok((self, None));
        }
        let (source, from) = (LogSource::all(process.reader(), snapshot.clone()), self.at);
        let look = move |source: &dyn Source| {
            let seen = self.watcher.look_through(source, from..end)?;
            self.at = end;
            Ok((self, seen.map(met)))
        };
        long_read::in_turn(app, process, (source, end - from), look).await
    }
}

fn met(Seen { range, text }: Seen) -> Met {
    Met::Pattern { range: to_wire::range(&range), text: read::lossy(text) }
}
