//! The end of a daemon: stops everything that it started, and logs the result.

use std::pin::pin;
use std::time::Duration;

use lastbyte_engine::{
    CloseReport, Engine, Filter, Id, Process, Signal, StopPolicy, StopProof, Survivors, Verb,
};
use tokio::time::timeout;

/// How long a KILL has to be proved.
const PATIENCE: Duration = Duration::from_secs(2);

/// Stops everything by its own policy; at a second signal at once, which is then returned.
pub(crate) async fn close(engine: &Engine, second: impl Future<Output = Signal>) -> Option<Signal> {
    let alive = alive(engine);
    tracing::info!(processes = alive.len(), "stopping all processes");
    for process in alive {
        tracing::info!(id = %process.id(), pid = process.pid(), "stopping");
    }
    let mut closing = pin!(engine.close(Survivors::Stop));
    let signal = tokio::select! {
        report = &mut closing => {
            log_report(&report);
            return None;
        }
        signal = second => signal,
    };
    tracing::warn!(%signal, "killing all processes");
    for process in self::alive(engine) {
        // Runs on its own; the close below waits for it.
        tokio::spawn(async move { process.stop_by(StopPolicy::KILL, Verb::Close).await });
    }
    let killing = engine.clone();
    tokio::spawn(async move { killing.stop_unowned(StopPolicy::KILL).await });
    match timeout(PATIENCE, closing).await {
        Ok(report) => log_report(&report),
        Err(_) => {
            tracing::error!(left = self::alive(engine).len(), "some processes are still running")
        }
    }
    Some(signal)
}

pub(super) fn alive(engine: &Engine) -> Vec<Process> {
    let page = engine.list(&Filter::default(), None, usize::MAX);
    let alive = page.processes.into_iter().filter(|(_, snapshot)| snapshot.ending().is_none());
    alive.map(|(process, _)| process).collect()
}

fn log_report(report: &CloseReport) {
    for (id, proof) in &report.stopped {
        log_proof(*id, proof);
    }
    if let Some(strangers) = report.strangers.as_ref().filter(|s| !s.signalled.is_empty()) {
        let (signalled, left) = (&strangers.signalled, &strangers.left);
        tracing::warn!(?signalled, ?left, "stopped processes that belong to no known command");
    }
    let left = report.proofs().filter(|proof| !proof.left.is_empty()).count();
    let stopped = report.stopped.len();
    match left {
        0 => tracing::info!(stopped, "all processes stopped"),
        _ => tracing::error!(stopped, left, "some processes were not stopped"),
    }
}

fn log_proof(id: Id, proof: &StopProof) {
    let (signalled, gone) = (proof.signalled.len(), proof.gone.len());
    if proof.left.is_empty() {
        let (reach, proved) = (proof.reach, proof.proved);
        tracing::info!(%id, signalled, gone, ?reach, proved, "stopped");
    } else {
        tracing::warn!(%id, signalled, gone, left = ?proof.left, reach = ?proof.reach, "not stopped");
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use lastbyte_engine::{Launch, Settings};
    use lastbyte_testkit::{Anchor, script};

    use super::*;

    async fn with_helper(actions: &str, grace: Duration) -> (Engine, Anchor, tempfile::TempDir) {
        let (state, anchor) = (tempfile::tempdir().unwrap(), Anchor::listen());
        let engine = Engine::new(Settings::new(state.path())).unwrap();
        let (name, value) = anchor.env();
        let launch = Launch {
            forced_env: vec![(name.into(), value)],
            stop: StopPolicy { grace, ..StopPolicy::default() },
            ..Launch::argv(script(actions))
        };
        engine.start(launch).await.unwrap();
        anchor.wait_for(1);
        (engine, anchor, state)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn everything_is_stopped_by_its_own_policy() {
        let (engine, anchor, _state) = with_helper("hold", Duration::from_secs(3600)).await;
        assert_eq!(close(&engine, pending()).await, None);
        anchor.wait_for_at_most(0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_second_signal_kills_what_would_take_its_time() {
        let hours = Duration::from_secs(3600);
        let (engine, anchor, _state) = with_helper("ignore 15 then hold", hours).await;
        assert_eq!(close(&engine, ready(Signal::INT)).await, Some(Signal::INT));
        anchor.wait_for_at_most(0);
    }
}
