//! What a terminal shows that has read the log.

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use lastbyte_engine::{Id, LogSource, Process};
use lastbyte_output::views::Source;
use lastbyte_output::views::screen::{self, Checkpoint, Newline, Rendered, Terminal};
use lastbyte_wire::{Content, Error, OutputQuery, Screen, ScreenCursor, Stream};

use super::ReadRequest;
use crate::App;
use crate::verbs::long_read;

const USUAL_ROWS: NonZeroU16 = NonZeroU16::new(24).expect("not 0");
const USUAL_COLS: NonZeroU16 = NonZeroU16::new(80).expect("not 0");

/// What all checkpoints may take: dozens of screens of a usual size.
const MOST_BYTES: usize = 8 << 20;

/// Checkpoints of the screens that were asked for last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checkpoints {
    /// The one used last is last.
    kept: Arc<Mutex<VecDeque<(Key, Checkpoint)>>>,
}

/// What a checkpoint is of.
type Key = (Id, Option<Stream>, Terminal);

/// The screen, and the range of the log that it is made from.
pub(super) async fn read(
    app: &App,
    process: &Process,
    source: LogSource,
    asked: &ReadRequest,
) -> Result<(Content, Range<u64>), Error> {
    let request = asked.screen;
    let terminal = terminal(process, request.rows, request.cols);
    let key = (process.id(), asked.stream, terminal);
    let at = request.at.unwrap_or(u64::MAX).min(source.end());
    let checkpoint = app.screens.before(&key, at);
    let bytes = at - screen::begins(at, checkpoint.as_ref().map(|checkpoint| checkpoint.at));
    let render = move |source: &dyn Source| screen::render(source, at, terminal, checkpoint);
    let mut rendered = long_read::in_turn(app, process, (source, bytes), render).await?;
    let state = request.ansi.then(|| rendered.state_to_go_on_from());
    // One that was forgotten meanwhile is not looked for again, and is pushed out by others.
    if let Some(checkpoint) = rendered.checkpoint.take() {
        app.screens.keep(key, checkpoint);
    }
    let range = rendered.from..rendered.at;
    let screen = to_wire(&rendered, state, terminal);
    Ok((Content::Screen { screen }, range))
}

fn terminal(process: &Process, rows: Option<NonZeroU16>, cols: Option<NonZeroU16>) -> Terminal {
    let size = process.terminal_size();
    let own = |count: u16| NonZeroU16::new(count.min(OutputQuery::MOST_ROWS_OR_COLS));
    Terminal {
        rows: rows.or_else(|| own(size?.rows)).unwrap_or(USUAL_ROWS),
        cols: cols.or_else(|| own(size?.cols)).unwrap_or(USUAL_COLS),
        newline: if size.is_some() { Newline::Down } else { Newline::NextLine },
    }
}

fn to_wire(rendered: &Rendered, state: Option<(u64, String)>, terminal: Terminal) -> Screen {
    let (ansi_at, ansi_state) = state.unzip();
    Screen {
        rows: terminal.rows.get(),
        cols: terminal.cols.get(),
        lines: rendered.lines(),
        cursor: rendered.cursor.map(|(row, col)| ScreenCursor { row, col }),
        title: rendered.title.clone(),
        alternate: rendered.is_alternate(),
        ansi_lines: ansi_at.map(|_| rendered.lines_with_colours()),
        ansi_state,
        ansi_at,
    }
}

impl Checkpoints {
    /// The nearest one at or before this offset.
    fn before(&self, key: &Key, at: u64) -> Option<Checkpoint> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let usable = kept.iter().filter(|(of, checkpoint)| of == key && checkpoint.at <= at);
        let nearest = usable.max_by_key(|(_, checkpoint)| checkpoint.at);
        nearest.map(|(_, checkpoint)| checkpoint.clone())
    }

    fn keep(&self, key: Key, checkpoint: Checkpoint) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(of, other)| {
            *of != key || other.at / screen::WINDOW != checkpoint.at / screen::WINDOW
        });
        kept.push_back((key, checkpoint));
        let mut bytes: usize = kept.iter().map(|(_, checkpoint)| checkpoint.bytes()).sum();
        while bytes > MOST_BYTES && kept.len() > 1 {
            bytes -= kept.pop_front().map_or(0, |(_, checkpoint)| checkpoint.bytes());
        }
    }
}
