//! Cgroups below our own cgroup, if this user can create any.

use std::ffi::CString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use lastbyte_sys::cgroup::{
    self, Cgroup, CgroupState, Claims, ParentCgroup, read_state, wait_until_empty,
};
use lastbyte_sys::spawn::{Failure, Mechanism, Request, Spawned, Spawners, Step, open_ends};
use lastbyte_sys::{Child, Errno, Status};
use rustix::event::{PollFd, PollFlags, poll};

const PATIENCE: Duration = Duration::from_secs(60);

/// A cgroup for this test only, because other programs sweep our own cgroup when they start.
struct Ground(PathBuf);

impl Ground {
    /// Reports it and returns `None` if this user cannot create cgroups.
    fn new() -> Option<Self> {
        if !lastbyte_testkit::has_cgroups("cgroups") {
            return None;
        }
        let own = cgroup::probe().expect("this user can make cgroups");
        let folder = own.join(format!("test-{}", std::process::id()));
        fs::create_dir(&folder).expect("as the probe did");
        Some(Self(folder))
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            fs::remove_dir(&self.0).expect("the test left nothing in it");
        }
    }
}

fn spawn(argv: &[&str], cgroup: &Cgroup, mechanism: Mechanism) -> Result<Child, Failure> {
    let string = |text: &&str| CString::new(*text).expect("no NUL");
    let request = Request {
        programs: vec![string(&argv[0])],
        argv: argv.iter().map(string).collect(),
        cwd: c"/".into(),
        cgroup: Some(cgroup.path()),
        ..Request::default()
    };
    let (spawners, answers) = Spawners::start(1, mechanism, None).expect("threads");
    let (_ours, childs) = open_ends(request.stdin, request.output).expect("there is room");
    spawners.submit(7, request, &childs).expect("a spawner lives");
    poll(&mut [PollFd::new(&answers, PollFlags::IN)], None).expect("poll");
    let answer = answers.receive().expect("socket").expect("a spawner lives");
    answer.result.map(|spawned| match spawned {
        Spawned::Held(child) => child,
        Spawned::Unheld(_) | Spawned::Lost => panic!("{spawned:?}"),
    })
}

fn state(populated: bool) -> CgroupState {
    CgroupState { populated, frozen: false }
}

#[test]
fn a_child_starts_in_its_cgroup_and_is_killed_with_it() {
    let Some(ground) = Ground::new() else { return };
    let parent = ParentCgroup::make(&ground.0).unwrap();
    let cgroup = parent.cgroup(0).unwrap();
    assert_eq!(cgroup.state().unwrap(), state(false));
    // A new session does not leave the cgroup.
    let script = "setsid sleep 60 & exec sleep 60";
    let child = spawn(&["/bin/sh", "-c", script], &cgroup, Mechanism::Clone3).unwrap();
    lastbyte_testkit::eventually("both are there", || cgroup.members().unwrap().len() == 2);
    assert!(cgroup.members().unwrap().contains(&child.pid()));
    let events = cgroup.events().unwrap();
    assert_eq!(read_state(&events).unwrap(), state(true));
    cgroup.kill().unwrap();
    assert!(wait_until_empty(cgroup.events().unwrap(), PATIENCE).unwrap());
    // The leader is an unreaped zombie, which does not count.
    assert_eq!((read_state(&events).unwrap(), cgroup.members().unwrap()), (state(false), vec![]));
    cgroup.remove().unwrap();
    assert!(!cgroup.folder().exists());
}

#[test]
fn a_populated_cgroup_is_neither_removed_nor_reused() {
    let Some(ground) = Ground::new() else { return };
    let parent = ParentCgroup::make(&ground.0).unwrap();
    let cgroup = parent.cgroup(0).unwrap();
    let child = spawn(&["/bin/sleep", "60"], &cgroup, Mechanism::Clone3).unwrap();
    assert_eq!(cgroup.remove().map_err(|e| Errno::from_io_error(&e)), Err(Some(Errno::BUSY)));
    assert!(!cgroup.end_use(cgroup.state().unwrap()));
    assert!(!wait_until_empty(cgroup.events().unwrap(), Duration::ZERO).unwrap());
    drop(child);
    assert!(wait_until_empty(cgroup.events().unwrap(), PATIENCE).unwrap());
    cgroup.remove().unwrap();
}

#[test]
fn cgroups_that_a_tree_created_inside_are_removed_with_it() {
    let Some(ground) = Ground::new() else { return };
    let parent = ParentCgroup::make(&ground.0).unwrap();
    let cgroup = parent.cgroup(0).unwrap();
    fs::create_dir_all(cgroup.folder().join("a/b")).unwrap();
    assert!(!cgroup.end_use(cgroup.state().unwrap()));
    let inner = cgroup.folder().join("a/b/cgroup.procs");
    let script = format!("echo $$ > {}; exec sleep 60", inner.display());
    let child = spawn(&["/bin/sh", "-c", &script], &cgroup, Mechanism::Clone3).unwrap();
    lastbyte_testkit::eventually("it has moved", || !fs::read(&inner).unwrap().is_empty());
    assert_eq!(cgroup.members().unwrap(), [child.pid()]);
    cgroup.kill().unwrap();
    assert!(wait_until_empty(cgroup.events().unwrap(), PATIENCE).unwrap());
    cgroup.remove().unwrap();
}

#[test]
fn a_frozen_cgroup_is_not_reused() {
    let Some(ground) = Ground::new() else { return };
    let parent = ParentCgroup::make(&ground.0).unwrap();
    let cgroup = parent.cgroup(0).unwrap();
    assert!(cgroup.end_use(cgroup.state().unwrap()));
    fs::write(cgroup.folder().join("cgroup.freeze"), "1").unwrap();
    assert!(!cgroup.end_use(cgroup.state().unwrap()), "the next tree would never run");
    cgroup.remove().unwrap();
}

#[test]
fn a_child_that_cannot_start_in_its_cgroup_does_not_start() {
    let Some(ground) = Ground::new() else { return };
    let parent = ParentCgroup::make(&ground.0).unwrap();
    let cgroup = parent.cgroup(0).unwrap();
    let refused = spawn(&["/bin/true"], &cgroup, Mechanism::Clone).map(drop);
    assert_eq!(refused, Err(Failure { step: Step::Cgroup, errno: Errno::NOSYS }));
    cgroup.remove().unwrap();
    let missing = spawn(&["/bin/true"], &cgroup, Mechanism::Clone3).map(drop);
    assert_eq!(missing, Err(Failure { step: Step::Cgroup, errno: Errno::NOENT }));
}

#[test]
fn a_sweep_removes_cgroups_of_dead_runs_and_keeps_those_of_live_ones() {
    let Some(ground) = Ground::new() else { return };
    let own = &ground.0;
    let live = ParentCgroup::make(own).unwrap();
    let (free, used) = (live.cgroup(0).unwrap(), live.cgroup(1).unwrap());
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
    assert!(folder.exists(), "it has a cgroup");
    cgroup::sweep(own).unwrap();
    assert!(!folder.exists());
}

#[test]
fn a_populated_cgroup_of_a_dead_run_is_swept_when_it_is_empty() {
    let Some(ground) = Ground::new() else { return };
    let parent = ParentCgroup::make(&ground.0).unwrap();
    let own = &ground.0;
    let cgroup = parent.cgroup(0).unwrap();
    let child = spawn(&["/bin/sleep", "60"], &cgroup, Mechanism::Clone3).unwrap();
    drop(parent);
    cgroup::sweep(own).unwrap();
    assert!(cgroup.folder().exists());
    drop(child);
    assert!(wait_until_empty(cgroup.events().unwrap(), PATIENCE).unwrap());
    cgroup::sweep(own).unwrap();
    assert!(!cgroup.folder().exists());
}

/// The kernel kills a process that is created in a cgroup that was killed. This must not look like
/// the end of a command.
#[test]
fn a_killed_cgroup_is_not_reused() {
    let Some(ground) = Ground::new() else { return };
    let parent = ParentCgroup::make(&ground.0).unwrap();
    let cgroup = parent.cgroup(0).unwrap();
    assert!(cgroup.end_use(cgroup.state().unwrap()));
    cgroup.kill().unwrap();
    assert!(!cgroup.end_use(cgroup.state().unwrap()));
    match spawn(&["/bin/true"], &cgroup, Mechanism::Clone3) {
        Ok(child) => assert_eq!(child.reap().unwrap().status, Status::Exited(0)),
        Err(failure) => assert_eq!(failure, Failure { step: Step::Cgroup, errno: Errno::CANCELED }),
    }
    cgroup.remove().unwrap();
}

#[test]
fn a_cgroup_of_a_dead_run_is_claimed_only_if_it_is_populated() {
    let Some(ground) = Ground::new() else { return };
    let own = &ground.0;
    let parent = ParentCgroup::make(own).unwrap();
    let (used, empty) = (parent.cgroup(0).unwrap(), parent.cgroup(1).unwrap());
    let child = spawn(&["/bin/sleep", "60"], &used, Mechanism::Clone3).unwrap();
    let claim = |cgroup: &Cgroup| Claims::default().claim(cgroup.folder());
    assert!(claim(&used).is_none(), "its parent has an owner");
    drop(parent);
    assert!(claim(&empty).is_none(), "nobody lives in it");
    let claimed = claim(&used).expect("left behind with somebody in it");
    assert!(claim(&used).is_none(), "it has an owner again");
    assert!(!claimed.end_use(claimed.state().unwrap()));
    // Other sweeps leave a claimed parent alone, so that its name is not reused.
    drop(child);
    assert!(wait_until_empty(claimed.events().unwrap(), PATIENCE).unwrap());
    cgroup::sweep(own).unwrap();
    assert!(claimed.folder().exists());
    drop(claimed);
    cgroup::sweep(own).unwrap();
    assert!(!used.folder().exists());
}
