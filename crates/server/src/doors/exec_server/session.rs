//! What a client has started. It outlives a lost connection: the client comes back with the session's id.

use std::collections::HashMap;
use std::collections::hash_map;
use std::sync::Arc;

use lastbyte_engine::{Engine, Launch, StopPolicy, Verb};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use super::door::Times;
use super::process::{Entry, Finished, ProcessTask, StartRequest, State};
use super::record::Record;
use crate::doors::rpc::survivors::Survivors;

/// Belongs to one connection at a time, or to nobody.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: String,
    engine: Engine,
    times: Times,
    processes: HashMap<String, Entry>,
    tasks: JoinSet<Finished>,
    survivors: Survivors,
}

impl Session {
    pub(super) fn new(id: String, engine: Engine, times: Times) -> Self {
        let (processes, tasks) = (HashMap::new(), JoinSet::new());
        Self { id, engine, times, processes, tasks, survivors: Survivors::default() }
    }

    /// The process with this id, as long as it is remembered.
    pub(super) fn get(&self, id: &str) -> Option<&Entry> {
        self.processes.get(id).filter(|entry| !entry.is_over())
    }

    /// Every process, with the number of its last event.
    pub(super) fn list(&self) -> impl Iterator<Item = (&String, &Entry, u64)> {
        self.processes.iter().map(|(id, entry)| {
            let last = entry.started().map_or(0, |record| record.events.borrow().last());
            (id, entry, last)
        })
    }

    /// Starts a process under an id that is free; its task answers.
    pub(super) fn start(
        &mut self,
        id: String,
        launch: Launch,
        request: StartRequest,
    ) -> watch::Receiver<State> {
        let (task, entry) = ProcessTask::new(self.engine.clone(), id.clone(), self.times);
        let state = entry.state.clone();
        self.processes.insert(id, entry);
        self.tasks.spawn(task.run(launch, request));
        state
    }

    /// Waits until a process is forgotten; forever if there is none. Cancel-safe.
    pub(super) async fn forget_next(&mut self) {
        match self.tasks.join_next().await {
            Some(finished) => self.forget(finished),
            None => std::future::pending().await,
        }
    }

    fn forget(&mut self, finished: Result<Finished, JoinError>) {
        // A task catches its own panics.
        let Ok(Finished { id, process }) = finished else { return };
        // The id may be another's by now.
        if let hash_map::Entry::Occupied(entry) = self.processes.entry(id)
            && entry.get().is_over()
        {
            entry.remove();
        }
        process.into_iter().for_each(|process| self.survivors.add(process));
    }

    /// Stops everything, also what ended processes left behind.
    pub(super) async fn stop(mut self) {
        let records: Vec<Arc<Record>> =
            self.processes.values().filter_map(Entry::started).collect();
        // What is being started is killed by its task's end.
        self.tasks.abort_all();
        let mut stops = JoinSet::new();
        for record in records {
            let engine = self.engine.clone();
            stops.spawn(async move {
                record.process.stop_by(StopPolicy::KILL, Verb::Close).await;
                record.process.ended().await;
                // If its log is still open, the engine forgets it later.
                _ = engine.forget(record.process.id());
            });
        }
        tokio::join!(stops.join_all(), self.survivors.stop());
    }
}
