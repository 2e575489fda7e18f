//! What the fuzz targets of the doors share.

use std::path::Path;
use std::time::Duration;

use lastbyte_engine::{Caps, Engine, History, Settings, Survivors};
use lastbyte_testkit::script;
use lastbyte_wire::{StartRequest, Wait};
use tokio::runtime::{Builder, Runtime};

use crate::verbs::start;
use crate::{App, Limits};

/// How long a client waits for an answer that may never come, as that to a wait.
pub(crate) const SOON: Duration = Duration::from_millis(50);

/// An app with one process, `it` of the session `mcp`, which has ended. No other can start, whatever is asked for.
pub(crate) fn app(state: &Path) -> (Runtime, App) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let app = runtime.block_on(async {
        let settings = || Settings { history: History::Journal, ..Settings::new(state) };
        let first = App::new(Engine::new(settings()).unwrap(), Limits::default());
        let words = script("print one then print two");
        let request = StartRequest {
            command: Some(words.into_iter().map(|word| word.into_string().unwrap()).collect()),
            name: Some("it".into()),
            session: Some("mcp".into()),
            wait: Some(Wait { exit: Some(true), ..Wait::default() }),
            ..StartRequest::default()
        };
        start::start(&first, &request).await.unwrap();
        first.engine.close(Survivors::Stop).await;
        drop(first);
        let caps = Caps { running: Some(0), ..Caps::default() };
        // What does not come is not waited for.
        let (head_time, lingering_close) = (Duration::from_millis(1), Duration::from_millis(1));
        let body_time = Duration::from_millis(5);
        let limits = Limits { head_time, lingering_close, body_time, ..Limits::default() };
        App::new(Engine::new(Settings { caps, ..settings() }).unwrap(), limits)
    });
    (runtime, app)
}
