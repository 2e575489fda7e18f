//! One scan of all processes that assigns each to a tree of this program.
//!
//! A process belongs to a tree because it is its leader or was seen there before, by its tag (by its
//! cookie if the tree has no tag), by the session or group of an unreaped leader, or because its
//! parent belongs. If this program adopts
//! orphans, every member is among its descendants. A descendant without any of these marks is
//! *unattributed*: it belongs to one of the trees, but it is unknown which.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use lastbyte_sys::orphans;
use lastbyte_sys::procfs::{self, Stat};
use lastbyte_sys::tag::Tag;

use super::fork_chain::AdoptedOrphans;
use super::marks::{self, Marks};
use super::members::Tree;
use crate::Id;
use crate::launch::environment::COOKIE;

/// All live processes of this program's trees.
#[derive(Debug, Default)]
pub(crate) struct Census {
    trees: HashMap<Id, Vec<Stat>>,
    unattributed: Vec<Stat>,
    /// Members of trees without a handle.
    forgotten: Vec<Stat>,
    /// Orphans that have appeared since the scan began, each with its tree, if it has one. `None` if
    /// they could not be read.
    appeared: Option<Vec<(Option<Id>, i32, String)>>,
}

/// The part of a census that concerns one tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct TreeView {
    pub(crate) members: Vec<Stat>,
    /// Processes that may belong to this tree or to another.
    pub(crate) unattributed: Vec<Stat>,
    /// `None` if they could not be read.
    pub(crate) appeared: Option<Appeared>,
}

/// Orphans that have appeared during the scan: one link each of fork chains that are too short-lived
/// for it. They may be gone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Appeared {
    /// Of this tree.
    pub(crate) member: Option<(i32, String)>,
    /// Of no tree that can be stopped.
    pub(crate) unowned: Option<(i32, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Membership {
    Tree(Id),
    Forgotten,
    /// Part of a leader that is just being started.
    Starting,
    Unattributed,
}

impl Census {
    /// Finds the members of these trees, and all unattributed processes.
    pub(super) fn take(asked: &[Arc<Marks>]) -> io::Result<Self> {
        let scan = Scan::new(marks::all())?;
        let mut membership = HashMap::new();
        for stat in scan.candidates(asked) {
            if let Some(found) = scan.trees.by_own_marks(stat)? {
                membership.insert(stat.pid, found);
            }
        }
        scan.add_by_session(&mut membership);
        scan.add_children(&mut membership);
        if orphans::adopts() {
            scan.add_orphans(&mut membership);
            scan.add_children(&mut membership);
        }
        Ok(Self::sorted(scan.all, &membership))
    }

    /// The same, and the orphans that have appeared meanwhile.
    pub(super) fn with_appeared(asked: &[Arc<Marks>]) -> io::Result<Self> {
        let adopted = AdoptedOrphans::now();
        let mut census = Self::take(asked)?;
        let Some(mut adopted) = adopted else {
            // Either this program adopts none, or they could not be read before the scan.
            census.appeared = (!orphans::adopts()).then(Vec::new);
            return Ok(census);
        };
        let asked: HashSet<Id> = asked.iter().map(|marks| marks.id).collect();
        let of_asked = census.trees.iter().filter(|(id, _)| asked.contains(id));
        let found = of_asked.flat_map(|(_, members)| members).chain(&census.unattributed);
        adopted.saw(found.map(|stat| stat.pid));
        let (mut trees, mut appeared) = (None, vec![]);
        let read = adopted.each_new(|orphan, _| {
            let trees = trees.get_or_insert_with(|| TreeIndex::new(marks::all()));
            let tree = match trees.find_orphan(orphan)? {
                Membership::Tree(id) => Some(id),
                Membership::Forgotten | Membership::Starting | Membership::Unattributed => None,
            };
            if !orphan.still_exists() {
                return Ok(true);
            }
            let is_wanted = tree.is_none_or(|id| asked.contains(&id));
            if is_wanted {
                appeared.push((tree, orphan.pid, orphan.name.clone()));
            }
            Ok(is_wanted)
        });
        census.appeared = read.is_ok().then_some(appeared);
        Ok(census)
    }

    fn sorted(all: Vec<Stat>, membership: &HashMap<i32, Membership>) -> Self {
        let mut census = Self::default();
        for stat in all.into_iter().filter(Stat::alive) {
            match membership.get(&stat.pid) {
                Some(Membership::Tree(id)) => census.trees.entry(*id).or_default().push(stat),
                Some(Membership::Forgotten) => census.forgotten.push(stat),
                Some(Membership::Unattributed) => census.unattributed.push(stat),
                Some(Membership::Starting) | None => {}
            }
        }
        census
    }

    pub(super) fn view(&self, marks: &Marks) -> TreeView {
        let may_be_its = |stat: &&Stat| marks.since.is_some_and(|since| stat.start_time >= since);
        TreeView {
            members: self.trees.get(&marks.id).cloned().unwrap_or_default(),
            unattributed: self.unattributed.iter().filter(may_be_its).cloned().collect(),
            appeared: self.appeared.as_ref().map(|all| Appeared {
                member: last_of(all, Some(marks.id)),
                unowned: last_of(all, None),
            }),
        }
    }

    /// The processes that belong to no tree that can be stopped.
    pub(super) fn into_unowned(self) -> Vec<Stat> {
        [self.unattributed, self.forgotten].concat()
    }
}

fn last_of(appeared: &[(Option<Id>, i32, String)], tree: Option<Id>) -> Option<(i32, String)> {
    let mut newest_first = appeared.iter().rev();
    newest_first.find(|(of, ..)| *of == tree).map(|(_, pid, name)| (*pid, name.clone()))
}

/// All processes, and all trees.
struct Scan {
    own: i32,
    /// The same, or the keeper.
    adopter: i32,
    all: Vec<Stat>,
    trees: TreeIndex,
}

/// The trees of this program, by the marks on their members.
struct TreeIndex {
    all: Vec<Arc<Marks>>,
    by_tag: HashMap<Tag, Id>,
    by_cookie: HashMap<Box<[u8]>, Id>,
    by_known: HashMap<(i32, u64), Id>,
}

impl Scan {
    fn new(trees: Vec<Arc<Marks>>) -> io::Result<Self> {
        let mut all = procfs::all()?;
        let pids: HashSet<i32> = all.iter().map(|stat| stat.pid).collect();
        // A process whose parent exits during the scan has a new parent.
        for stat in all.iter_mut().filter(|stat| stat.parent != 0 && !pids.contains(&stat.parent)) {
            if let Ok(again) = procfs::read_stat(stat.pid)
                && again.start_time == stat.start_time
            {
                *stat = again;
            }
        }
        let own = std::process::id().cast_signed();
        let adopter = orphans::adopter().unwrap_or(own);
        Ok(Self { own, adopter, all, trees: TreeIndex::new(trees) })
    }

    /// The processes that can be members: our descendants if this program adopts orphans, otherwise
    /// all that are not older than the trees.
    fn candidates(&self, asked: &[Arc<Marks>]) -> impl Iterator<Item = &Stat> {
        let since = asked.iter().map(|marks| marks.since).min().flatten();
        let descendants = (orphans::adopts() && since.is_some()).then(|| self.descendants());
        self.all.iter().filter(move |stat| match &descendants {
            Some(descendants) => descendants.contains(&stat.pid),
            None => since.is_none_or(|since| stat.start_time >= since),
        })
    }

    fn descendants(&self) -> HashSet<i32> {
        let mut ours = HashMap::from([(self.adopter, Membership::Unattributed)]);
        self.add_children(&mut ours);
        ours.remove(&self.adopter);
        ours.into_keys().collect()
    }

    /// A leader's pid identifies its session and group only while it is unreaped. If it still is
    /// afterwards, it was during the whole scan.
    fn add_by_session(&self, membership: &mut HashMap<i32, Membership>) {
        let leaders: HashMap<i32, &Marks> =
            self.trees.all.iter().map(|marks| (marks.leader, &**marks)).collect();
        let mut there = HashMap::new();
        for stat in self.all.iter() {
            let leader = leaders.get(&stat.session).or_else(|| leaders.get(&stat.group));
            let Some(marks) = leader.filter(|_| !membership.contains_key(&stat.pid)) else {
                continue;
            };
            if *there.entry(marks.leader).or_insert_with(|| marks.leader_is_there()) {
                membership.insert(stat.pid, Membership::Tree(marks.id));
            }
        }
    }

    /// Assigns children, at any depth, to the tree of their parents.
    fn add_children(&self, membership: &mut HashMap<i32, Membership>) {
        loop {
            let before = membership.len();
            for stat in &self.all {
                if let Some(parents) = membership.get(&stat.parent).copied() {
                    membership.entry(stat.pid).or_insert(parents);
                }
            }
            if membership.len() == before {
                return;
            }
        }
    }

    /// The rest of our children: leaders about to execute their program, and orphans.
    fn add_orphans(&self, membership: &mut HashMap<i32, Membership>) {
        let orphans = match marks::only(&self.trees.all) {
            Some(id) => Membership::Tree(id),
            None => Membership::Unattributed,
        };
        for child in self.all.iter().filter(|stat| [self.own, self.adopter].contains(&stat.parent))
        {
            // In this order, because a leader stays in the list until it is reaped.
            let is_orphan = || orphans::is_orphan(child) && child.still_exists();
            membership
                .entry(child.pid)
                .or_insert_with(|| if is_orphan() { orphans } else { Membership::Starting });
        }
    }
}

impl TreeIndex {
    fn new(all: Vec<Arc<Marks>>) -> Self {
        let tags = all.iter().filter_map(|marks| Some((marks.tag?, marks.id)));
        let untagged = all.iter().filter(|marks| marks.tag.is_none());
        let cookies = untagged.map(|marks| (marks.cookie.clone(), marks.id));
        let known = all.iter().flat_map(|marks| marks.known().map(|known| (known, marks.id)));
        let (by_tag, by_cookie) = (tags.collect(), cookies.collect());
        Self { by_tag, by_cookie, by_known: known.collect(), all }
    }

    fn by_own_marks(&self, stat: &Stat) -> io::Result<Option<Membership>> {
        if let Some(id) = self.by_known.get(&(stat.pid, stat.start_time)) {
            return Ok(Some(Membership::Tree(*id)));
        }
        if let Some(tag) = Tag::from_pid(stat.pid)? {
            let by_tag = self.by_tag.get(&tag).copied();
            return Ok(Some(by_tag.map_or(Membership::Forgotten, Membership::Tree)));
        }
        if self.by_cookie.is_empty() {
            return Ok(None);
        }
        let cookie = procfs::initial_env(stat.pid, COOKIE)?;
        let by_cookie = cookie.and_then(|cookie| self.by_cookie.get(&*cookie));
        Ok(by_cookie.copied().map(Membership::Tree))
    }

    fn find_orphan(&self, orphan: &Stat) -> io::Result<Membership> {
        let only = || marks::only(&self.all).map(Membership::Tree);
        Ok(self.by_own_marks(orphan)?.or_else(only).unwrap_or(Membership::Unattributed))
    }
}

/// Whether this orphan belongs to no tree that can be stopped.
pub(super) fn is_unowned(orphan: &Stat) -> io::Result<bool> {
    Ok(!matches!(TreeIndex::new(marks::all()).find_orphan(orphan)?, Membership::Tree(_)))
}

/// Which of these trees of reaped leaders have live members. Scans all processes twice, however
/// many trees there are.
pub(crate) fn with_survivors(trees: &[Tree]) -> Vec<bool> {
    let in_cgroup = trees.iter().filter(|tree| lives_in_cgroup(tree));
    let mut alive: HashSet<Id> = in_cgroup.map(|tree| tree.marks.id).collect();
    let asked: Vec<Arc<Marks>> = trees.iter().map(|tree| Arc::clone(&tree.marks)).collect();
    if asked.is_empty() {
        return vec![];
    }
    let adopted = AdoptedOrphans::now();
    for _ in 0..2 {
        match Census::take(&asked) {
            Ok(census) => alive.extend(census.trees.into_keys()),
            // A tree that could not be read may not be empty.
            Err(_) => return vec![true; asked.len()],
        }
    }
    // The links of a fork chain are too short-lived for a scan.
    alive.extend(adopted.map(trees_of_new).unwrap_or_default());
    asked.iter().map(|marks| alive.contains(&marks.id)).collect()
}

/// The trees of orphans that have appeared. After an error, only those found before it.
fn trees_of_new(mut adopted: AdoptedOrphans) -> HashSet<Id> {
    let (trees, mut found) = (TreeIndex::new(marks::all()), HashSet::new());
    _ = adopted.each_new(|orphan, _| {
        if let Membership::Tree(id) = trees.find_orphan(orphan)? {
            found.insert(id);
        }
        Ok(!orphan.still_exists())
    });
    found
}

fn lives_in_cgroup(tree: &Tree) -> bool {
    let Some(lease) = tree.lease() else { return false };
    lease
        .with_cgroup(|cgroup| cgroup.state())
        .map_or(true, |state| state.is_some_and(|s| s.populated))
}
