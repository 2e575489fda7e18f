//! Looking through all processes for those of a tree: by parent, session, group and cookie.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, OnceLock};

use lastbyte_sys::procfs::{self, Stat};

use super::members::Tree;
use crate::Id;
use crate::environment::COOKIE;

/// What members of a tree have in common.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    pub(super) leader: i32,
    /// With the pid it names the leader for ever; `None` where `/proc` did not tell.
    leader_start: Option<u64>,
    /// The value of `LASTBYTE_ID`, which children inherit.
    cookie: Arc<[u8]>,
    /// Pid and start of those who were seen while the leader was unreaped: some of them may have
    /// thrown the cookie away.
    known: Arc<OnceLock<HashSet<(i32, u64)>>>,
}

impl Marks {
    /// Of a leader that is not reaped yet.
    pub(super) fn of(leader: i32, id: Id) -> Self {
        let leader_start = procfs::read_stat(leader).ok().map(|stat| stat.start_time);
        Self { leader_start, ..Self::unlooked(leader, id) }
    }

    pub(super) fn unlooked(leader: i32, id: Id) -> Self {
        let cookie = id.to_string().into_bytes().into();
        Self { leader, leader_start: None, cookie, known: Arc::default() }
    }

    /// Keeps who they are beyond the leader's reaping.
    pub(super) fn remember(&self, members: &[Stat]) {
        self.known.get_or_init(|| members.iter().map(|stat| (stat.pid, stat.start_time)).collect());
    }

    fn is_known(&self, stat: &Stat) -> bool {
        self.known.get().is_some_and(|known| known.contains(&(stat.pid, stat.start_time)))
    }

    /// Every live member, the leader included.
    pub(super) fn scan(&self) -> io::Result<Vec<Stat>> {
        let all = procfs::all()?;
        let mut found = HashSet::new();
        for stat in &all {
            if self.is_known(stat) || self.may_descend(stat) && self.bears_cookie(stat)? {
                found.insert(stat.pid);
            }
        }
        // The leader's number means its session and group only while it is unreaped. It was so
        // during the whole look if it still is afterwards.
        if self.leader_is_there() {
            let ours = |stat: &&Stat| stat.session == self.leader || stat.group == self.leader;
            found.extend(all.iter().filter(ours).map(|stat| stat.pid));
        }
        add_descendants(&all, &mut found);
        Ok(all.into_iter().filter(|stat| found.contains(&stat.pid) && stat.alive()).collect())
    }

    fn leader_is_there(&self) -> bool {
        let now = procfs::read_stat(self.leader).ok().map(|stat| stat.start_time);
        now.is_some() && now == self.leader_start
    }

    /// Nothing that is older than the leader can descend from it, which spares most of the looks.
    fn may_descend(&self, stat: &Stat) -> bool {
        self.leader_start.is_none_or(|start| stat.start_time >= start)
    }

    fn bears_cookie(&self, stat: &Stat) -> io::Result<bool> {
        Ok(procfs::started_with(stat.pid, COOKIE)?.is_some_and(|value| *value == *self.cookie))
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

/// Which of these trees of reaped leaders have anybody alive in them. However many they are, all
/// processes are looked through twice and no oftener.
pub(crate) fn with_survivors(trees: &[Tree]) -> Vec<bool> {
    let mut alive: Vec<bool> = trees.iter().map(lives_in_leaf).collect();
    let by_cookie = cookies(trees.iter().enumerate().filter(|(_, tree)| tree.lease().is_none()));
    if by_cookie.is_empty() {
        return alive;
    }
    for _ in 0..2 {
        match census(trees, &by_cookie) {
            Ok(found) => found.into_iter().for_each(|index| alive[index] = true),
            // What could not be looked at is not known to be empty.
            Err(_) => by_cookie.values().for_each(|index| alive[*index] = true),
        }
    }
    alive
}

/// Which of these trees have anybody alive who bears their cookie, descends from such a one or was
/// known before, in a leaf or out of it. All processes are looked through once.
pub(super) fn with_members(trees: &[Tree]) -> io::Result<Vec<bool>> {
    let found = census(trees, &cookies(trees.iter().enumerate()))?;
    Ok((0..trees.len()).map(|index| found.contains(&index)).collect())
}

/// Which tree a cookie means, by its place in a list.
fn cookies<'a>(trees: impl Iterator<Item = (usize, &'a Tree)>) -> HashMap<&'a [u8], usize> {
    trees.map(|(index, tree)| (&*tree.marks.cookie, index)).collect()
}

fn lives_in_leaf(tree: &Tree) -> bool {
    let Some(lease) = tree.lease() else { return false };
    lease.look(|leaf| leaf.state()).map_or(true, |state| state.is_some_and(|s| s.populated))
}

/// The trees that live processes belong to, by their cookie or that of an ancestor.
fn census(trees: &[Tree], by_cookie: &HashMap<&[u8], usize>) -> io::Result<HashSet<usize>> {
    let all = procfs::all()?;
    let mut tree_of = HashMap::new();
    for stat in &all {
        let cookie = procfs::started_with(stat.pid, COOKIE)?;
        let by_cookie = cookie.and_then(|cookie| by_cookie.get(&*cookie).copied());
        let known = || trees.iter().position(|tree| tree.marks.is_known(stat));
        if let Some(index) = by_cookie.or_else(known) {
            tree_of.insert(stat.pid, index);
        }
    }
    loop {
        let before = tree_of.len();
        for stat in &all {
            if let Some(index) = tree_of.get(&stat.parent).copied() {
                tree_of.entry(stat.pid).or_insert(index);
            }
        }
        if tree_of.len() == before {
            break;
        }
    }
    let living = all.iter().filter(|stat| stat.alive());
    Ok(living.filter_map(|stat| tree_of.get(&stat.pid).copied()).collect())
}
