//! Orphans that appear during a scan: a chain of forks in which each link lives only briefly.
//!
//! A scan of all processes takes longer than such a link lives. It finds none, or signals one that
//! is already gone. But if this program adopts orphans, the live link, or the dead one before it,
//! is among its children, and reading those takes microseconds.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lastbyte_sys::procfs::{self, Member, Stat};
use lastbyte_sys::{Signal, orphans};

use super::census::is_unowned;
use super::marks::{self, Marks};

/// The orphans that this program has adopted so far.
#[derive(Debug)]
pub(super) struct AdoptedOrphans {
    seen: HashSet<i32>,
}

/// The orphans of one tree, or those of none.
#[derive(Debug)]
pub(crate) struct ForkChain {
    /// `None` for orphans that belong to no tree that can be stopped.
    tree: Option<Arc<Marks>>,
    adopted: AdoptedOrphans,
}

/// The orphans found by [`ForkChain::follow`].
#[derive(Debug, Default)]
pub(crate) struct Caught {
    /// All that have appeared, including dead ones, with their names.
    pub(crate) appeared: Vec<(i32, String)>,
    /// Those that received a signal.
    pub(crate) reached: Vec<Member>,
}

/// How long to follow a chain before scanning all processes again.
const LONGEST: Duration = Duration::from_millis(100);
/// The chain is broken if no link appears for this long.
const QUIET: Duration = Duration::from_millis(5);
/// The kernel's list of children can omit the next child if one of them exits meanwhile.
const FEWEST_READS: usize = 4;

impl AdoptedOrphans {
    /// `None` if this program does not adopt orphans.
    pub(super) fn now() -> Option<Self> {
        let seen = orphans::adopts().then(orphans::adopted)?.ok()?;
        Some(Self { seen: seen.into_iter().collect() })
    }

    /// Records the pids that a scan has found.
    pub(super) fn saw(&mut self, pids: impl IntoIterator<Item = i32>) {
        self.seen.extend(pids);
    }

    /// Calls the predicate for each orphan that has appeared since, until no more of interest
    /// appear. Blocks.
    pub(super) fn each_new(
        &mut self,
        mut is_of_interest: impl FnMut(&Stat, Option<Member>) -> io::Result<bool>,
    ) -> io::Result<()> {
        let begun = Instant::now();
        let (mut reads, mut last) = (0, None);
        loop {
            reads += 1;
            if self.read(&mut is_of_interest)? {
                last = Some(Instant::now());
            }
            let quiet = last.map_or(reads >= FEWEST_READS, |last| last.elapsed() > QUIET);
            if quiet || begun.elapsed() > LONGEST {
                return Ok(());
            }
        }
    }

    /// Whether an orphan of interest has appeared, or one that was gone before it could be checked.
    fn read(
        &mut self,
        is_of_interest: &mut impl FnMut(&Stat, Option<Member>) -> io::Result<bool>,
    ) -> io::Result<bool> {
        let mut news = false;
        // Newest first: that is the live one.
        for pid in orphans::adopted()?.into_iter().rev() {
            if !self.seen.insert(pid) {
                continue;
            }
            // Opened first, verified second: see [`Member::open`].
            let member = Member::open(pid);
            match procfs::read_stat(pid) {
                Ok(stat) if orphans::is_orphan(&stat) => news |= is_of_interest(&stat, member)?,
                Ok(_) => {}
                Err(_) => news = true,
            }
        }
        Ok(news)
    }
}

impl ForkChain {
    /// Begins. Leaves existing orphans to the scan that follows. `None` if this program does not
    /// adopt orphans.
    pub(super) fn new(tree: Option<Arc<Marks>>) -> Option<Self> {
        Some(Self { tree, adopted: AdoptedOrphans::now()? })
    }

    /// Records the pids that the scan has found.
    pub(crate) fn saw(&mut self, pids: impl IntoIterator<Item = i32>) {
        self.adopted.saw(pids);
    }

    /// Signals every orphan that has appeared, until no more appear. Blocks.
    pub(crate) fn follow(&mut self, signals: &[Signal]) -> io::Result<Caught> {
        let mut caught = Caught::default();
        let Self { tree, adopted } = self;
        adopted.each_new(|stat, member| {
            let belongs = belongs(tree.as_deref(), stat)?;
            // An orphan that is gone may have belonged to the tree.
            if !stat.still_exists() {
                return Ok(true);
            }
            if !belongs {
                return Ok(false);
            }
            caught.appeared.push((stat.pid, stat.name.clone()));
            let taken = |member: &Member| signals.iter().filter(|s| member.signal(**s)).count() > 0;
            let member = member.map(|member| member.named(&stat.name));
            caught.reached.extend(member.filter(|_| stat.alive()).filter(taken));
            Ok(true)
        })?;
        Ok(caught)
    }
}

fn belongs(tree: Option<&Marks>, orphan: &Stat) -> io::Result<bool> {
    match tree {
        Some(marks) => Ok(marks.are_on(orphan.pid)? || marks::is_only(marks)),
        None => is_unowned(orphan),
    }
}
