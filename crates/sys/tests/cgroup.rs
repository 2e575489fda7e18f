//! Leaves of our own cgroup. Where the machine cannot make any, these fail.

use std::ffi::CString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use lastbyte_sys::cgroup::{self, Branch, Claims, Leaf, State, read_state, wait_until_empty};
use lastbyte_sys::spawn::{Failure, Mechanism, Output, Request, Spawned, Spawners, Stdin, Step};
use lastbyte_sys::{Errno, Status};
use rustix::event::{PollFd, PollFlags, poll};

const PATIENCE: Duration = Duration::from_secs(60);

/// A cgroup for this test alone: whoever starts elsewhere sweeps our own one.
struct Ground(PathBuf);

impl Ground {
    fn new() -> Self {
        let own = cgroup::probe().expect("this machine can make leaves");
        let folder = own.join(format!("test-{}", std::process::id()));
        fs::create_dir(&folder).expect("as the probe did");
        Self(folder)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            fs::remove_dir(&self.0).expect("the test left nothing in it");
        }
    }
}

fn spawn(argv: &[&str], leaf: &Leaf, mechanism: Mechanism) -> Result<Spawned, Failure> {
    let string = |text: &&str| CString::new(*text).expect("no NUL");
    let request = Request {
        programs: vec![string(&argv[0])],
        argv: argv.iter().map(string).collect(),
        env: vec![],
        cwd: c"/".into(),
        stdin: Stdin::Null,
        output: Output::Merged,
        leaf: Some(leaf.path()),
        confinement: None,
    };
    let (spawners, answers) = Spawners::start(1, mechanism, None).expect("threads");
    assert!(spawners.submit(7, request));
    poll(&mut [PollFd::new(&answers, PollFlags::IN)], None).expect("poll");
    answers.receive().expect("socket").expect("a spawner lives").result
}

fn state(populated: bool) -> State {
    State { populated, frozen: false }
}

#[test]
fn a_child_is_born_in_its_leaf_and_killed_with_it() {
    let ground = Ground::new();
    let branch = Branch::make(&ground.0).unwrap();
    let leaf = branch.leaf(0).unwrap();
    assert_eq!(leaf.state().unwrap(), state(false));
    // A session of its own does not take anybody out of a leaf.
    let script = "setsid sleep 60 & exec sleep 60";
    let spawned = spawn(&["/bin/sh", "-c", script], &leaf, Mechanism::Clone3).unwrap();
    lastbyte_testkit::eventually("both are there", || leaf.members().unwrap().len() == 2);
    assert!(leaf.members().unwrap().contains(&spawned.child.pid()));
    let events = leaf.events().unwrap();
    assert_eq!(read_state(&events).unwrap(), state(true));
    leaf.kill().unwrap();
    assert!(wait_until_empty(leaf.events().unwrap(), PATIENCE).unwrap());
    // The leader is an unreaped zombie, which counts for nothing.
    assert_eq!((read_state(&events).unwrap(), leaf.members().unwrap()), (state(false), vec![]));
    leaf.remove().unwrap();
    assert!(!leaf.folder().exists());
}

#[test]
fn a_leaf_in_which_somebody_lives_is_not_removed_nor_reused() {
    let ground = Ground::new();
    let branch = Branch::make(&ground.0).unwrap();
    let leaf = branch.leaf(0).unwrap();
    let spawned = spawn(&["/bin/sleep", "60"], &leaf, Mechanism::Clone3).unwrap();
    assert_eq!(leaf.remove().map_err(|e| Errno::from_io_error(&e)), Err(Some(Errno::BUSY)));
    assert!(!leaf.reusable(leaf.state().unwrap()));
    assert!(!wait_until_empty(leaf.events().unwrap(), Duration::ZERO).unwrap());
    drop(spawned);
    assert!(wait_until_empty(leaf.events().unwrap(), PATIENCE).unwrap());
    leaf.remove().unwrap();
}

#[test]
fn what_a_tree_made_of_its_leaf_goes_with_it() {
    let ground = Ground::new();
    let branch = Branch::make(&ground.0).unwrap();
    let leaf = branch.leaf(0).unwrap();
    fs::create_dir_all(leaf.folder().join("a/b")).unwrap();
    assert!(!leaf.reusable(leaf.state().unwrap()));
    let inner = leaf.folder().join("a/b/cgroup.procs");
    let script = format!("echo $$ > {}; exec sleep 60", inner.display());
    let spawned = spawn(&["/bin/sh", "-c", &script], &leaf, Mechanism::Clone3).unwrap();
    lastbyte_testkit::eventually("it has moved", || !fs::read(&inner).unwrap().is_empty());
    assert_eq!(leaf.members().unwrap(), [spawned.child.pid()]);
    leaf.kill().unwrap();
    assert!(wait_until_empty(leaf.events().unwrap(), PATIENCE).unwrap());
    leaf.remove().unwrap();
}

#[test]
fn a_frozen_leaf_is_not_reused() {
    let ground = Ground::new();
    let branch = Branch::make(&ground.0).unwrap();
    let leaf = branch.leaf(0).unwrap();
    assert!(leaf.reusable(leaf.state().unwrap()));
    fs::write(leaf.folder().join("cgroup.freeze"), "1").unwrap();
    assert!(!leaf.reusable(leaf.state().unwrap()), "the next tree would never run");
    leaf.remove().unwrap();
}

#[test]
fn what_cannot_be_born_in_its_leaf_is_not_born_elsewhere() {
    let ground = Ground::new();
    let branch = Branch::make(&ground.0).unwrap();
    let leaf = branch.leaf(0).unwrap();
    let refused = spawn(&["/bin/true"], &leaf, Mechanism::Clone).map(drop);
    assert_eq!(refused, Err(Failure { step: Step::Leaf, errno: Errno::NOSYS }));
    leaf.remove().unwrap();
    let missing = spawn(&["/bin/true"], &leaf, Mechanism::Clone3).map(drop);
    assert_eq!(missing, Err(Failure { step: Step::Leaf, errno: Errno::NOENT }));
}

#[test]
fn what_a_dead_run_left_is_swept_and_what_a_live_one_has_is_not() {
    let ground = Ground::new();
    let own = &ground.0;
    let live = Branch::make(own).unwrap();
    let (free, used) = (live.leaf(0).unwrap(), live.leaf(1).unwrap());
    let dead = own.join("lastbyte-1-0");
    fs::create_dir_all(dead.join("7/inner")).unwrap();
    let foreign = own.join("foreign");
    fs::create_dir(&foreign).unwrap();
    cgroup::sweep(own).unwrap();
    assert!(!dead.exists());
    assert!(free.folder().exists() && used.folder().exists() && foreign.exists());
    fs::remove_dir(&foreign).unwrap();
    free.remove().unwrap();
    let folder = live.folder().to_owned();
    drop(live);
    assert!(folder.exists(), "it has a leaf");
    cgroup::sweep(own).unwrap();
    assert!(!folder.exists());
}

#[test]
fn a_dead_run_in_which_somebody_lives_is_swept_when_he_is_gone() {
    let ground = Ground::new();
    let branch = Branch::make(&ground.0).unwrap();
    let own = &ground.0;
    let leaf = branch.leaf(0).unwrap();
    let spawned = spawn(&["/bin/sleep", "60"], &leaf, Mechanism::Clone3).unwrap();
    drop(branch);
    cgroup::sweep(own).unwrap();
    assert!(leaf.folder().exists());
    drop(spawned);
    assert!(wait_until_empty(leaf.events().unwrap(), PATIENCE).unwrap());
    cgroup::sweep(own).unwrap();
    assert!(!leaf.folder().exists());
}

/// The kernel kills whoever is born in a cgroup that was killed before: that must not look like
/// the end of a command.
#[test]
fn a_leaf_that_was_killed_is_not_used_again() {
    let ground = Ground::new();
    let branch = Branch::make(&ground.0).unwrap();
    let leaf = branch.leaf(0).unwrap();
    assert!(leaf.reusable(leaf.state().unwrap()));
    leaf.kill().unwrap();
    assert!(!leaf.reusable(leaf.state().unwrap()));
    match spawn(&["/bin/true"], &leaf, Mechanism::Clone3) {
        Ok(spawned) => assert_eq!(spawned.child.reap().unwrap().status, Status::Exited(0)),
        Err(failure) => assert_eq!(failure, Failure { step: Step::Leaf, errno: Errno::CANCELED }),
    }
    leaf.remove().unwrap();
}

#[test]
fn a_leaf_of_a_dead_run_is_claimed_only_while_somebody_lives_in_it() {
    let ground = Ground::new();
    let own = &ground.0;
    let branch = Branch::make(own).unwrap();
    let (used, empty) = (branch.leaf(0).unwrap(), branch.leaf(1).unwrap());
    let spawned = spawn(&["/bin/sleep", "60"], &used, Mechanism::Clone3).unwrap();
    let claim = |leaf: &Leaf| Claims::default().claim(leaf.folder());
    assert!(claim(&used).is_none(), "its branch has an owner");
    drop(branch);
    assert!(claim(&empty).is_none(), "nobody lives in it");
    let claimed = claim(&used).expect("left behind with somebody in it");
    assert!(claim(&used).is_none(), "it has an owner again");
    assert!(!claimed.reusable(claimed.state().unwrap()));
    // A sweep of others leaves a branch alone that was claimed, so that its name is not used again.
    drop(spawned);
    assert!(wait_until_empty(claimed.events().unwrap(), PATIENCE).unwrap());
    cgroup::sweep(own).unwrap();
    assert!(claimed.folder().exists());
    drop(claimed);
    cgroup::sweep(own).unwrap();
    assert!(!used.folder().exists());
}
