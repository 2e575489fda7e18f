//! Who descends from a leader, found in `/proc` by parent, session, group and cookie.
//!
//! Everything here blocks for the time of a scan and belongs on a blocking thread. Members are
//! held by pidfd, so a signal reaches the process that was found and no successor of its pid.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lastbyte_sys::Signal;
use lastbyte_sys::procfs::{self, Member, Stat};

use crate::Id;
use crate::ending::{Holder, Holders};
use crate::environment::COOKIE;

/// A live process of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    pub pid: i32,
    pub name: String,
}

/// What identifies a tree, before and after its leader is gone.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    leader: i32,
    /// With the pid it names the leader for ever; `None` where `/proc` did not tell.
    leader_start: Option<u64>,
    /// `LASTBYTE_ID=…`, which children inherit.
    cookie: Arc<[u8]>,
}

/// How long a look for holders may take, and how many names it gives.
const HOLDERS_TIME: Duration = Duration::from_millis(20);
const MOST_HOLDERS: usize = 64;

impl Tree {
    /// Of a leader that is not reaped yet.
    pub(crate) fn of(leader: i32, id: Id) -> Self {
        let leader_start = procfs::read_stat(leader).ok().map(|stat| stat.start_time);
        Self { leader, leader_start, cookie: format!("{COOKIE}={id}").into_bytes().into() }
    }

    /// Every live member, the leader included.
    pub(crate) fn members(&self) -> Vec<Stat> {
        let all: Vec<Stat> = procfs::all().map(Iterator::collect).unwrap_or_default();
        let mut found: HashSet<i32> =
            all.iter().filter(|stat| self.bears_cookie(stat)).map(|stat| stat.pid).collect();
        // The leader's number means its session and group only while it is unreaped. It was so
        // during the whole look if it still is afterwards.
        if self.leader_is_there() {
            let ours = |stat: &&Stat| stat.session == self.leader || stat.group == self.leader;
            found.extend(all.iter().filter(ours).map(|stat| stat.pid));
        }
        add_descendants(&all, &mut found);
        all.into_iter().filter(|stat| found.contains(&stat.pid) && stat.alive()).collect()
    }

    /// Sends a signal to the live members of the leader's group; returns how many got it.
    pub(crate) fn signal_group(&self, signal: Signal) -> usize {
        let in_group = |stat: &Stat| stat.group == self.leader;
        let members = self.members().into_iter().filter(in_group).filter_map(Member::hold);
        members.filter(|member| member.signal(signal)).count()
    }

    /// The live members that have one of these pipes open.
    pub(crate) fn holders(&self, pipes: &[u64]) -> Holders {
        let deadline = Instant::now() + HOLDERS_TIME;
        let mut holders = Vec::new();
        for stat in self.members() {
            if Instant::now() >= deadline || holders.len() == MOST_HOLDERS {
                break;
            }
            if procfs::holds_any(stat.pid, pipes) {
                holders.push(Holder { pid: stat.pid, name: stat.name });
            }
        }
        match holders.is_empty() {
            true => Holders::Unknown,
            false => Holders::Known(holders),
        }
    }

    /// The live members, by name.
    pub(crate) fn survivors(&self) -> Vec<Survivor> {
        let survivor = |stat: Stat| Survivor { pid: stat.pid, name: stat.name };
        self.members().into_iter().map(survivor).collect()
    }

    fn leader_is_there(&self) -> bool {
        let now = procfs::read_stat(self.leader).ok().map(|stat| stat.start_time);
        now.is_some() && now == self.leader_start
    }

    /// Nothing that is older than the leader can descend from it, which spares most of the looks.
    fn bears_cookie(&self, stat: &Stat) -> bool {
        let younger = self.leader_start.is_none_or(|start| stat.start_time >= start);
        younger && procfs::started_with(stat.pid, &self.cookie)
    }
}

/// Adds the children of those found, and theirs.
fn add_descendants(all: &[Stat], found: &mut HashSet<i32>) {
    loop {
        let before = found.len();
        for stat in all {
            if found.contains(&stat.parent) {
                found.insert(stat.pid);
            }
        }
        if found.len() == before {
            return;
        }
    }
}
