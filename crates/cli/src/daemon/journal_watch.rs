//! Logs when the journal can no longer be written, and when it can again.

use std::time::Duration;

use lastbyte_engine::JournalState;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// A disk at its limit takes one record and not the next: that is one change, not two for each.
const AT_MOST_EVERY: Duration = Duration::from_secs(5);

/// Stops when the set is dropped. Must be called on a runtime.
pub(crate) fn begin(states: watch::Receiver<JournalState>) -> JoinSet<()> {
    JoinSet::from_iter([watch(states)])
}

async fn watch(mut states: watch::Receiver<JournalState>) {
    let mut told = JournalState::default();
    loop {
        let differs = |state: &JournalState| !is_told_by(state, &told);
        // The engine is gone.
        let Ok(state) = states.wait_for(differs).await.map(|state| state.clone()) else { return };
        log_change(&told, &state);
        told = state;
        sleep_until(Instant::now() + AT_MOST_EVERY).await;
    }
}

/// Whether this state has been logged already.
fn is_told_by(state: &JournalState, told: &JournalState) -> bool {
    (&state.trouble, state.rewritten) == (&told.trouble, told.rewritten)
}

fn log_change(told: &JournalState, state: &JournalState) {
    if state.rewritten > told.rewritten {
        tracing::error!(
            "the state directory or its journal was removed: wrote the journal again, but output \
             files may be lost"
        );
    }
    match (&told.trouble, &state.trouble) {
        (_, Some(why)) if told.trouble != state.trouble => tracing::error!(
            %why,
            "cannot write the journal: results stay in memory and are lost if the server is killed"
        ),
        (Some(_), None) => {
            tracing::info!("the journal is writable again; all records are on disk")
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_what_waits_is_no_news() {
        let trouble = Some("full".to_owned());
        let told = JournalState { trouble, waiting_bytes: 1, rewritten: 2 };
        assert!(is_told_by(&JournalState { waiting_bytes: 9, ..told.clone() }, &told));
        assert!(!is_told_by(&JournalState { rewritten: 3, ..told.clone() }, &told));
        assert!(!is_told_by(&JournalState { trouble: None, ..told.clone() }, &told));
    }
}
