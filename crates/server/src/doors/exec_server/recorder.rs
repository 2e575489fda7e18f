//! From the log of a process to its numbered events.

use std::time::Duration;

use lastbyte_engine::{Ending, Status};
use lastbyte_output::log::Stream;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep_until};

use super::denial::Denial;
use super::record::Record;
use crate::doors::rpc::send_queue::until_below;
use crate::verbs::follow::{Follower, Part, Step};

/// How many parts of one read become chunks of their own; of more, each stream becomes one.
const MOST_PARTS: usize = 16;
/// A process with more chunks than this gets at most a hundred more each second, so that the index of
/// one that writes single bytes for hours stays small.
const MANY_CHUNKS: u64 = 1 << 20;
const PAUSE: Duration = Duration::from_millis(20);

impl Record {
    /// Numbers everything until the output is closed. Cancel-safe only in that nothing is numbered
    /// twice: it is to be run once, to its end.
    pub(super) async fn follow(&self) {
        let mut follower = Follower::whole(&self.process);
        let mut denial = Denial::new(&self.process.spec().sandbox);
        loop {
            match follower.next().await {
                Ok(Some(Step::Output(parts))) => {
                    parts.iter().for_each(|part| denial.look_at(follower.bytes(&part.range)));
                    self.add(&parts);
                }
                Ok(Some(Step::Dropped(range))) => self.lose(range),
                Ok(Some(Step::Ending(ending))) => self.exit(&ending, &denial).await,
                Ok(None) => break,
                // The process is not to blame: its end is told, without that output.
                Err(error) => {
                    tracing::warn!(%error, "output is lost");
                    self.lose(follower.skip_unread());
                }
            }
            if self.events.borrow().last() > MANY_CHUNKS {
                sleep_until(Instant::now() + PAUSE).await;
            }
            // Files are always ready: without this, no other task of this thread would run.
            consume_budget().await;
        }
        self.events.send_modify(|events| events.close());
    }

    fn add(&self, parts: &[Part]) {
        let [first, .., last] = parts else {
            return parts.iter().for_each(|part| self.add_one(part));
        };
        if parts.len() <= MOST_PARTS {
            return parts.iter().for_each(|part| self.add_one(part));
        }
        let range = first.range.start..last.range.end;
        self.events.send_modify(|events| events.chunks().push_both(range));
    }

    fn add_one(&self, Part { range, stream, .. }: &Part) {
        let stream = stream.unwrap_or(Stream::Out);
        self.events.send_modify(|events| events.chunks().push(range.clone(), stream));
    }

    fn lose(&self, range: std::ops::Range<u64>) {
        self.events.send_modify(|events| {
            events.lost += range.end - range.start;
            events.chunks().push(range, Stream::Out);
        });
    }

    /// A process that is being terminated has exited when its whole tree is gone.
    async fn exit(&self, ending: &Ending, denial: &Denial) {
        until_below(1, &self.stops).await;
        let code = exit_code(ending.status);
        self.events.send_modify(|events| events.exit(code, denial.is_likely(code)));
    }
}

fn exit_code(status: Status) -> i32 {
    match status {
        Status::Exited(code) => code,
        Status::Signalled { signal, .. } => 128 + signal.number(),
        // Unknown.
        Status::Lost(_) => -1,
    }
}
