//! Reading what may be much of a log: off the runtime, in turn with the other long reads, and only
//! for as long as somebody waits for the answer.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Weak};

use lastbyte_engine::{LogSource, Process};
use lastbyte_output::views::{Read, Source};
use lastbyte_wire::Error;

use super::refusal;
use crate::App;

/// What is read without a turn: it takes some milliseconds, and does not wait behind long reads.
const SHORT: u64 = 1 << 20;

/// Reads a log, of which it may have to read this many bytes. A caller that goes away gives up its
/// turn, and a read that has begun ends at its next chunk.
pub(crate) async fn in_turn<T: Send + 'static>(
    app: &App,
    process: &Process,
    (source, bytes): (LogSource, u64),
    read: impl FnOnce(&dyn Source) -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let turn = if bytes > SHORT { app.long_read_turn().await } else { None };
    let wanted = Arc::new(());
    let source = WhileWanted { source, wanted: Arc::downgrade(&wanted) };
    let read = refusal::read_blocking(process, "reading the output", move || {
        // Held until the thread is free, which is a little later than the caller is gone.
        let _turn = turn;
        read(&source)
    });
    let read = read.await;
    drop(wanted);
    read
}

/// A log that cannot be read any more when nobody wants it.
struct WhileWanted {
    source: LogSource,
    wanted: Weak<()>,
}

impl Source for WhileWanted {
    fn end(&self) -> u64 {
        self.source.end()
    }

    fn dropped(&self) -> &[Range<u64>] {
        self.source.dropped()
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<Read> {
        if self.wanted.strong_count() == 0 {
            return Err(io::Error::other("the client is gone"));
        }
        self.source.read_at(at, into)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::{Pin, pin};
    use std::sync::mpsc::sync_channel;
    use std::task::Poll;

    use lastbyte_engine::{Engine, Launch, Settings};
    use lastbyte_wire::View;
    use tempfile::TempDir;

    use super::super::read::{self, ReadRequest};
    use super::*;
    use crate::Limits;

    const LONG: u64 = SHORT + 1;

    /// An app with one turn, and a process that has written much.
    async fn long_log() -> (TempDir, App, Process) {
        let state = tempfile::tempdir().unwrap();
        let engine = Engine::new(Settings::new(state.path())).unwrap();
        let app = App::new(engine, Limits { long_reads: 1, ..Limits::default() });
        let launch = Launch::shell(format!("head -c {LONG} /dev/zero"));
        let process = app.engine.start(launch).await.unwrap().process;
        process.ended().await;
        (state, app, process)
    }

    fn source(process: &Process) -> LogSource {
        LogSource::output(process.reader(), process.snapshot())
    }

    async fn is_ready<T>(mut future: Pin<&mut impl Future<Output = T>>) -> bool {
        poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
    }

    #[tokio::test]
    async fn a_long_read_waits_for_its_turn_and_a_short_one_does_not() {
        let (_state, app, process) = long_log().await;
        let turn = app.long_read_turn().await;
        let mut long = pin!(in_turn(&app, &process, (source(&process), LONG), |_| Ok("long")));
        assert!(!is_ready(long.as_mut()).await);
        let short = in_turn(&app, &process, (source(&process), SHORT), |_| Ok("short")).await;
        assert_eq!(short, Ok("short"));
        assert!(!is_ready(long.as_mut()).await);
        drop(turn);
        assert_eq!(long.await, Ok("long"));
    }

    #[tokio::test]
    async fn a_read_ends_when_its_caller_goes_away_and_gives_up_its_turn() {
        let (_state, app, process) = long_log().await;
        let (has_read, reads) = sync_channel(0);
        let endless = move |source: &dyn Source| -> io::Result<()> {
            loop {
                source.read_at(0, &mut [0])?;
                // Ends a test that has failed.
                has_read.send(()).map_err(io::Error::other)?;
            }
        };
        let mut reading = Box::pin(in_turn(&app, &process, (source(&process), LONG), endless));
        assert!(!is_ready(reading.as_mut()).await);
        reads.recv().unwrap();
        drop(reading);
        // One more may have begun before.
        assert!(reads.into_iter().take(2).count() < 2);
        drop(app.long_read_turn().await);
    }

    #[tokio::test]
    async fn a_view_that_may_read_all_of_a_long_log_waits_for_its_turn() {
        let (_state, app, process) = long_log().await;
        let snapshot = process.snapshot();
        let asked = |view| ReadRequest::whole_log(view, None).unwrap();
        let turn = app.long_read_turn().await;
        let mut text = pin!(read::view(&app, &process, &snapshot, asked(View::Text)));
        assert!(!is_ready(text.as_mut()).await);
        for bounded in [View::Raw, View::HeadTail, View::Lines] {
            assert!(read::view(&app, &process, &snapshot, asked(bounded)).await.is_ok());
        }
        drop(turn);
        assert!(!is_ready(pin!(app.long_read_turn())).await, "it goes to the view");
        assert_eq!(text.await.unwrap().total, LONG);
    }
}
