//! Starting: one process for each key, whatever the callers do meanwhile.

use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use lastbyte_sys::Errno;
use lastbyte_sys::cgroup::CgroupLimits;
use lastbyte_sys::registry::Slot;
use lastbyte_sys::spawn::{Step, open_ends};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use super::caps::CapReached;
use super::gates::Gate;
use super::key_conflict::Difference;
use super::process_map::{Keyed, TakenName};
use super::{Engine, Inner};
use crate::Id;
use crate::engine::in_flight::Ongoing;
use crate::journal::{Entry, Fingerprint, Launched};
use crate::launch::environment::Environment;
use crate::launch::plan::{LaunchError, Named, Plan, SpawnError, Warning};
use crate::launch::{Key, Launch, Limited, Name, ResourceError, Session, Spec, Stdin, Streams};
use crate::notes::{Notes, Terms};
use crate::owner::owner_end::StartTime;
use crate::process::Process;
use crate::sandbox::{Confined, SandboxError};
use crate::tree::Seed;

/// A process that runs, and whether this call started it.
#[derive(Debug, Clone)]
pub struct Started {
    pub process: Process,
    /// It was there already, under the same key.
    pub attached: bool,
    pub warnings: Vec<Warning>,
}

/// Why there is no process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Resources(#[from] ResourceError),
    #[error(transparent)]
    Cap(#[from] CapReached),
    #[error("the key {key:?} was already used for a start that differs in its {differs}", key = key.0)]
    KeyConflict { key: Key, differs: Difference },
    #[error("the name {name:?} is taken: {}", holder(id.as_ref()), name = name.0)]
    NameTaken {
        name: Name,
        /// `None` if it is being started.
        id: Option<Id>,
    },
    #[error("the engine is closed")]
    Closed,
}

/// Why there is no process, in a word for each reason that a caller can do something else about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The launch makes no sense.
    Launch,
    Cwd,
    ProgramNotFound,
    ProgramNotRunnable,
    Sandbox,
    /// A limit that cannot be enforced here.
    LimitUnavailable,
    LimitAboveCap,
    /// The server, or the session, has enough.
    Cap,
    KeyConflict,
    NameTaken,
    Closed,
    /// The machine would not.
    Failed,
}

/// What came of a start, for everybody who waits for it.
pub(super) type Outcome = Result<Started, StartError>;

impl StartError {
    pub fn refused(&self) -> Refused {
        match self {
            Self::Launch(LaunchError::Cwd { .. }) | Self::Spawn(SpawnError::Cwd { .. }) => {
                Refused::Cwd
            }
            Self::Launch(
                LaunchError::EmptyCommand
                | LaunchError::Nul { .. }
                | LaunchError::EnvName { .. }
                | LaunchError::SecretTwice { .. }
                | LaunchError::Input { .. },
            ) => Refused::Launch,
            Self::Spawn(
                SpawnError::NotInPath { .. } | SpawnError::Program { errno: Errno::NOENT, .. },
            ) => Refused::ProgramNotFound,
            Self::Spawn(
                SpawnError::Program { .. }
                | SpawnError::Directory { .. }
                | SpawnError::Interpreter { .. },
            ) => Refused::ProgramNotRunnable,
            Self::Spawn(SpawnError::Step { .. }) => Refused::Failed,
            Self::Sandbox(_) => Refused::Sandbox,
            Self::Resources(ResourceError::TooSmall { .. }) => Refused::Launch,
            Self::Resources(ResourceError::AboveCap { .. }) => Refused::LimitAboveCap,
            Self::Resources(
                ResourceError::Unavailable { .. } | ResourceError::NotByKernel { .. },
            ) => Refused::LimitUnavailable,
            Self::Cap(_) => Refused::Cap,
            Self::KeyConflict { .. } => Refused::KeyConflict,
            Self::NameTaken { .. } => Refused::NameTaken,
            Self::Closed => Refused::Closed,
        }
    }
}

impl Refused {
    pub const ALL: [Self; 12] = [
        Self::Launch,
        Self::Cwd,
        Self::ProgramNotFound,
        Self::ProgramNotRunnable,
        Self::Sandbox,
        Self::LimitUnavailable,
        Self::LimitAboveCap,
        Self::Cap,
        Self::KeyConflict,
        Self::NameTaken,
        Self::Closed,
        Self::Failed,
    ];
}

impl Engine {
    /// Starts a process, or finds the one that the same key and launch have started. The start
    /// goes on when the caller goes away.
    pub async fn start(&self, launch: Launch) -> Result<Started, StartError> {
        let (outcome, waiting) = watch::channel(None);
        let reserved = self.inner.reserve(&launch, &waiting);
        match reserved.inspect_err(|error| self.inner.count_refused(error))? {
            Reserved::Ours(starting) => {
                let work = carry_out(starting, launch, outcome);
                match self.inner.settings.provider {
                    // Code of others: what it does to its task it must not do to the caller's.
                    Some(_) => _ = tokio::spawn(work),
                    None => Carried::new(work).await,
                }
                until_known(waiting).await
            }
            Reserved::Known(other) => {
                until_known(other).await.map(|started| Started { attached: true, ..started })
            }
        }
    }
}

/// Work that is done in the caller's task, which saves it the way through another one, and goes on
/// in a task of its own when the caller goes away.
struct Carried<W: Future<Output = ()> + Send + 'static> {
    /// `None` once it is done.
    work: Option<Pin<Box<W>>>,
    /// To go on there; the caller may be dropped where no runtime is entered.
    runtime: Handle,
}

impl<W: Future<Output = ()> + Send + 'static> Carried<W> {
    fn new(work: W) -> Self {
        Self { work: Some(Box::pin(work)), runtime: Handle::current() }
    }
}

impl<W: Future<Output = ()> + Send + 'static> Future for Carried<W> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // Taken out while it runs: work that panics is not tried again.
        let Some(mut work) = self.work.take() else { return Poll::Ready(()) };
        let poll = work.as_mut().poll(context);
        if poll.is_pending() {
            self.work = Some(work);
        }
        poll
    }
}

impl<W: Future<Output = ()> + Send + 'static> Drop for Carried<W> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.runtime.spawn(work);
        }
    }
}

/// The one that started it first tells everybody.
async fn until_known(mut outcome: Waiting) -> Outcome {
    let known = outcome.wait_for(Option::is_some).await;
    // A start that panicked tells nobody anything.
    known.ok().and_then(|known| known.clone()).unwrap_or(Err(StartError::Spawn(GONE)))
}

const GONE: SpawnError = SpawnError::Step { step: Step::Clone, errno: Errno::NOTRECOVERABLE };

async fn carry_out(starting: Starting, launch: Launch, outcome: watch::Sender<Option<Outcome>>) {
    let mut starting = starting;
    let result = starting.inner.start(&launch).await;
    match &result {
        Ok(_) => (starting.key, starting.counted) = (None, None),
        Err(error) => starting.inner.count_refused(error),
    }
    // The key is free again before anybody hears that it failed.
    drop(starting);
    outcome.send_replace(Some(result));
}

type Waiting = watch::Receiver<Option<Outcome>>;

enum Reserved {
    /// The caller is to start it.
    Ours(Starting),
    /// Somebody has, or is about to.
    Known(Waiting),
}

/// Counts a start as under way for as long as it lives, and holds its key.
struct Starting {
    inner: Arc<Inner>,
    /// Released with this, unless something was started under it: then it can be tried again.
    key: Option<Key>,
    /// Released with this: from then on its process has it.
    name: Option<TakenName>,
    /// The session in which it counts as under way; `None` once its process is in the map.
    counted: Option<InSession>,
    _in_flight: Ongoing,
}

/// Where a start counts; without a session, with all others that have none.
struct InSession(Option<Session>);

impl Drop for Starting {
    fn drop(&mut self) {
        if self.key.is_none() && self.name.is_none() && self.counted.is_none() {
            return;
        }
        let mut processes = self.inner.processes();
        self.key.iter().for_each(|key| processes.release(key));
        self.name.iter().for_each(|name| processes.release_name(name));
        self.counted.iter().for_each(|InSession(session)| processes.start_failed(session));
    }
}

impl Inner {
    /// Decided under one lock: who starts it, and that closing waits for it.
    fn reserve(
        self: &Arc<Self>,
        launch: &Launch,
        outcome: &Waiting,
    ) -> Result<Reserved, StartError> {
        let hashes = || Fingerprint::with_fields(launch, self.hash_key);
        let key = launch.key.clone().map(|key| (key, hashes()));
        let mut processes = self.processes();
        if let Some((key, (fingerprint, fields))) = &key
            && let Some(known) = processes.keyed(key)
        {
            if known.fingerprint != *fingerprint {
                let differs = known.difference(launch, fields);
                return Err(StartError::KeyConflict { key: key.clone(), differs });
            }
            return Ok(Reserved::Known(known.outcome));
        }
        if processes.closed {
            return Err(StartError::Closed);
        }
        self.settings.caps.check(&processes, launch.session.as_ref())?;
        let name = launch.name.clone().map(|name| TakenName { name, within: launch.name_within() });
        if let Some(taken) = &name {
            let name = || taken.name.clone();
            let free = processes.take_name(taken);
            free.map_err(|id| StartError::NameTaken { name: name(), id })?;
        }
        if let Some((key, (fingerprint, fields))) = key {
            let (fields, outcome) = (Some(fields), outcome.clone());
            processes.reserve(key, Keyed { fingerprint, fields, outcome });
        }
        let counted = self.settings.caps.count_running();
        let counted = counted.then(|| InSession(launch.session.clone()));
        counted.iter().for_each(|InSession(session)| processes.start_begins(session.clone()));
        let (inner, key) = (Arc::clone(self), launch.key.clone());
        let _in_flight = self.starting.begin();
        Ok(Reserved::Ours(Starting { inner, key, name, counted, _in_flight }))
    }

    /// Files that are open for later logs give way to a start that lacks descriptors.
    async fn start(self: &Arc<Self>, launch: &Launch) -> Outcome {
        match self.start_with_or_without_cgroup(launch).await {
            Err(error) if is_short_of_descriptors(&error) && self.free_descriptors() => {
                self.start_with_or_without_cgroup(launch).await
            }
            outcome => outcome,
        }
    }

    fn free_descriptors(&self) -> bool {
        self.logs.empty() > 0
    }

    async fn start_with_or_without_cgroup(self: &Arc<Self>, launch: &Launch) -> Outcome {
        let outcome = self.start_on(|limits| self.trees.seed(limits), launch).await;
        let Err(StartError::Spawn(SpawnError::Step { step: Step::Cgroup, errno })) = outcome else {
            return outcome;
        };
        let Some(seed) = self.trees.seed_without_cgroup() else { return outcome };
        let mut started = self.start_on(|_| Ok(seed), launch).await?;
        started.warnings.push(Warning::NoCgroup(errno));
        Ok(started)
    }

    async fn start_on(
        self: &Arc<Self>,
        seed: impl FnOnce(Option<CgroupLimits>) -> io::Result<Seed> + Send,
        launch: &Launch,
    ) -> Outcome {
        let id = self.ids.next();
        let resources = self.settings.resources.apply(launch.resources)?;
        let is_limited = !resources.is_empty();
        let (base, warning) = self.base_environment().await;
        let workdir = self.settings.workdir.as_deref();
        let plan = Plan::new(id, launch, workdir, base)?;
        let Plan { mut request, arg0, cwd, tmpdir, mut warnings } = plan;
        let confined = self.sandboxes.confinement(&launch.sandbox, &cwd, tmpdir.as_deref())?;
        let enforcement = confined.as_ref().map(|confined| confined.enforcement);
        if let Some(Confined { confinement, enforcement: _, warnings: more }) = confined {
            request.confinement = Some(confinement);
            warnings.extend(more);
        }
        warnings.extend(warning);
        let named = Named::new(&request);
        arg0.into_iter().for_each(|name| request.argv[0] = name);
        let asked = Instant::now();
        // Never closed. A start that waits for its turn holds no descriptors.
        let _turn = self.turns.acquire().await;
        // A provider or a disk may have taken its time.
        if self.processes().closed {
            return Err(StartError::Closed);
        }
        let begun = StartTime { wall: SystemTime::now(), clock: Instant::now() };
        let slot = self.enter(id)?;
        request.place = slot.as_ref().map(|slot| slot.place());
        let notes = Notes::new(slot);
        let (ours, childs) = open_ends(request.stdin, request.output).map_err(SpawnError::from)?;
        let seed = seed(is_limited.then(|| resources.for_cgroup()));
        let seed = seed.map_err(|error| step(Step::Cgroup, &error))?;
        let by = resources.enforced_by(seed.controllers(), seed.reach())?;
        let limited = is_limited.then_some(Limited { limits: resources, by });
        request.rlimits = resources.for_each_process();
        let prepared = self.prepare(begun.wall, launch, (ours, notes.clone()));
        let prepared = prepared.map_err(|error| step(Step::Handover, &error))?;
        let (cgroup, birth) = (seed.cgroup(), seed.birth());
        notes.write(Terms::new(launch), begun.clock, birth);
        request.cgroup = cgroup.clone();
        (request.tag, _) = birth;
        let gates = self.gates.as_ref().filter(|_| launch.key.is_some());
        // Until `started` is written down.
        let gate = gates.and_then(|gates| gates.make(id));
        request.gate = gate.as_ref().and_then(Gate::for_child);
        let spec =
            Spec { enforcement, resources: limited, ..Spec::new(id, launch, cwd, begun.wall) };
        let spec = Arc::new(spec);
        let entry = self.write_down(launch, &spec, cgroup, prepared.pump.log().number());
        let recorded = entry.as_ref().map(Entry::recorded).unwrap_or_default();
        let child = match self.spawner.spawn(request, childs).await {
            Ok(child) => child,
            Err(failure) => {
                drop(entry);
                self.give_back(prepared, &recorded);
                return Err(SpawnError::from_failure(failure, &named, &spec.cwd).into());
            }
        };
        // From here on the command runs, and nothing fails.
        self.counts.spawns.note(asked.elapsed());
        entry.iter().for_each(|entry| entry.started(child.pid()));
        drop(gate);
        let child = child.entered_in(notes.slot().cloned());
        let tree = seed.grow(child.pid(), id);
        let spec = (spec, Terms::new(launch));
        let adopted = self.adopt(spec, prepared, (child, tree), (recorded, begun));
        let process = self.register(adopted, entry, launch.touches.clone()).await;
        if matches!((&launch.stdin, launch.streams), (Stdin::Given(_), Streams::Pty(_))) {
            process.see_that_input_ends();
        }
        Ok(Started { process, attached: false, warnings })
    }

    fn count_refused(&self, error: &StartError) {
        self.counts.count_refused(error.refused());
    }

    /// For the keeper, where there is one.
    fn enter(&self, id: Id) -> Result<Option<Arc<Slot>>, SpawnError> {
        let Some(registry) = self.registry else { return Ok(None) };
        let slot = registry.enter(id.number());
        slot.map(Some).ok_or(SpawnError::Step { step: Step::Handover, errno: Errno::NFILE })
    }

    /// Into the journal, where there is one, before anything runs: a crash must not leave behind
    /// what nobody knows of.
    fn write_down(
        &self,
        launch: &Launch,
        spec: &Arc<Spec>,
        cgroup: Option<CString>,
        log: u64,
    ) -> Option<Entry> {
        let journal = self.journal.as_ref()?;
        let launched = Launched {
            spec: Arc::clone(spec),
            fingerprint: spec.key.as_ref().map(|_| Fingerprint::of(launch, self.hash_key)),
            cgroup: cgroup.map(|cgroup| OsString::from_vec(cgroup.into_bytes()).into()),
            log: Some(log),
        };
        Some(Entry::launched(journal, launched))
    }

    /// The provider's environment if there is one and it answers, else our own.
    async fn base_environment(&self) -> (Environment, Option<Warning>) {
        let own = &self.settings.environment;
        let Some(provider) = &self.settings.provider else { return (own.clone(), None) };
        match provider.environment(own).await {
            Ok(environment) => (environment, None),
            Err(error) => (own.clone(), Some(Warning::Environment(error.0.to_string()))),
        }
    }
}

fn holder(id: Option<&Id>) -> String {
    match id {
        Some(id) => format!("process {id} has it and is running"),
        None => "another start with it is under way".into(),
    }
}

/// Of a start whose command did not run.
fn is_short_of_descriptors(error: &StartError) -> bool {
    let StartError::Spawn(SpawnError::Step { step, errno }) = error else { return false };
    *step != Step::Held && [Errno::MFILE, Errno::NFILE].contains(errno)
}

fn step(step: Step, error: &io::Error) -> SpawnError {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    SpawnError::Step { step, errno }
}
