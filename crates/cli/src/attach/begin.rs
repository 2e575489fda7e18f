//! Where the output begins that an attach shows.

use lastbyte_client::wire::OutputQuery;
use lastbyte_client::{Client, ClientError};

use super::modes::Drawing;
use super::replay::Replay;
use crate::terminal;

/// The first byte that is shown as it comes, and what is shown before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Begin {
    pub(crate) cursor: i64,
    pub(crate) shown: Vec<u8>,
    pub(crate) drawing: Drawing,
}

impl Begin {
    /// At exactly this byte.
    pub(crate) fn at(cursor: i64) -> Self {
        Self { cursor, shown: Vec::new(), drawing: Drawing::Lines }
    }
}

/// How far back it is looked for what a program has made of its terminal.
const LOOK_BACK: i64 = 16 << 20;
/// Asked for at once.
const PIECE: u64 = 1 << 20;

/// As if our terminal had been there all the time, as far as that can be had: the last screen of
/// lines, or for a program that has the whole screen the screen that it draws on.
pub(crate) async fn last_screen(client: &Client, id: &str) -> Result<Begin, ClientError> {
    let rows = terminal::size().rows.saturating_sub(1).max(1);
    let mut replay = Replay::new(rows.into());
    let mut cursor = -LOOK_BACK;
    let mut end = None;
    loop {
        let query =
            OutputQuery { from: Some(cursor), max_bytes: Some(PIECE), ..OutputQuery::default() };
        let piece = client.raw(id, &query).await?;
        if u64::try_from(cursor).is_ok_and(|cursor| piece.from > cursor) {
            replay.gap();
        }
        replay.take(&piece.bytes);
        cursor = i64::try_from(piece.next).unwrap_or(i64::MAX);
        // What comes meanwhile is not run after.
        let end = *end.get_or_insert(piece.final_len.unwrap_or(piece.total));
        if piece.next >= end || piece.bytes.is_empty() {
            break;
        }
    }
    let (mut shown, modes, begun) = replay.finish();
    shown.extend(modes.turn_on().into_bytes());
    shown.extend(begun);
    Ok(Begin { cursor, shown, drawing: modes.drawing() })
}
