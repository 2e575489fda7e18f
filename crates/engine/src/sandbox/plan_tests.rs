//! What a policy comes to, on a machine that exists in this file alone.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use lastbyte_sys::Errno;

use super::error::{Needs, SandboxError};
use super::plan::{Places, Plan, Resolved};
use super::{Network, Sandbox, Workspace};

/// `/ws/link` leads to `/etc`, `/home` to `/usr/home`.
fn resolve(path: &Path) -> Result<Resolved, Errno> {
    let path = path.to_str().unwrap();
    let path =
        match path.strip_prefix("/home").filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(rest) => format!("/usr/home{rest}"),
            None => path.replace("/ws/link", "/etc"),
        };
    match path.as_str() {
        file if file.ends_with(".txt") => Ok(Resolved { path: file.into(), folder: false }),
        missing if missing.contains("missing") => Err(Errno::NOENT),
        folder => Ok(Resolved { path: folder.into(), folder: true }),
    }
}

fn workspace() -> Workspace {
    Workspace { slash_tmp: false, tmpdir: false, ..Workspace::default() }
}

fn plan_at(cwd: &str, workspace: Workspace, hidden: &[&str]) -> Result<Plan, SandboxError> {
    let hidden: Vec<PathBuf> = hidden.iter().map(PathBuf::from).collect();
    let tmpdir = Some(OsStr::new("/var/tmp"));
    let places = Places { cwd: Path::new(cwd), tmpdir, hidden: &hidden };
    Plan::new(&Sandbox::WorkspaceWrite(workspace), places, resolve).map(|plan| plan.unwrap())
}

fn plan(workspace: Workspace, hidden: &[&str]) -> Result<Plan, SandboxError> {
    plan_at("/ws", workspace, hidden)
}

fn paths(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(PathBuf::from).collect()
}

#[test]
fn full_access_and_external_need_no_plan_and_no_look() {
    let hidden = paths(&["/state"]);
    let places = Places { cwd: Path::new("/ws"), tmpdir: None, hidden: &hidden };
    let looked = |_: &Path| -> Result<Resolved, Errno> { panic!("a look that nobody needs") };
    for sandbox in [Sandbox::FullAccess, Sandbox::External] {
        assert_eq!(Plan::new(&sandbox, places, looked), Ok(None));
    }
}

#[test]
fn read_only_has_no_roots_and_hides_what_is_the_servers() {
    let hidden = paths(&["/state/run", "/state", "/missing"]);
    let places = Places { cwd: Path::new("/ws"), tmpdir: None, hidden: &hidden };
    let plan = Plan::new(&Sandbox::ReadOnly { network: Network::On }, places, resolve);
    let plan = plan.unwrap().unwrap();
    assert_eq!((plan.roots, plan.hidden), (paths(&[]), paths(&["/state"])));
    assert_eq!((plan.network, plan.shared_memory), (Network::On, None));
}

#[test]
fn roots_are_where_they_lead_and_none_lies_in_another() {
    let roots = paths(&["/ws/a", "/home/u", "/ws-b", "/ws"]);
    let plan = plan(Workspace { roots, slash_tmp: true, tmpdir: true, ..workspace() }, &[]);
    assert_eq!(plan.unwrap().roots, paths(&["/tmp", "/usr/home/u", "/var/tmp", "/ws", "/ws-b"]));
}

#[test]
fn what_cannot_be_a_root_is_an_error_that_names_it() {
    let with = |root: &str| plan(Workspace { roots: paths(&[root]), ..workspace() }, &["/state"]);
    let path = |root: &str| PathBuf::from(root);
    let relative = SandboxError::RootRelative { path: path("a") };
    let missing = SandboxError::Root { path: path("/missing"), errno: Errno::NOENT };
    let file = SandboxError::Root { path: path("/a.txt"), errno: Errno::NOTDIR };
    assert_eq!(with("a"), Err(relative));
    assert_eq!(with("/missing"), Err(missing));
    assert_eq!(with("/a.txt"), Err(file));
    assert_eq!(with("/"), Err(SandboxError::RootIsAll { path: path("/") }));
    assert_eq!(with("/state/x"), Err(SandboxError::RootHidden { path: path("/state/x") }));
    for root in ["/proc", "/proc/sys", "/sys/fs/cgroup", "/dev", "/dev/pts"] {
        assert_eq!(with(root), Err(SandboxError::RootOfKernel { path: path(root) }));
    }
    assert!(with("/dev/shm/a").is_ok() && with("/devices").is_ok());
}

#[test]
fn the_directory_of_a_command_is_not_the_servers_nor_everything() {
    let hidden = plan_at("/state/logs", workspace(), &["/state"]);
    assert_eq!(hidden, Err(SandboxError::CwdHidden { path: "/state/logs".into() }));
    assert_eq!(plan_at("/", workspace(), &[]), Err(SandboxError::RootIsAll { path: "/".into() }));
    let elsewhere = Workspace { cwd: false, roots: paths(&["/ws"]), ..workspace() };
    assert_eq!(plan_at("/", elsewhere, &[]).unwrap().roots, paths(&["/ws"]));
}

#[test]
fn a_tmpdir_that_makes_no_sense_is_no_root() {
    for tmpdir in ["", "tmp", "/", "/missing", "/a.txt", "/state/tmp", "/proc"] {
        let hidden = paths(&["/state"]);
        let tmpdir = Some(OsStr::new(tmpdir));
        let places = Places { cwd: Path::new("/ws"), tmpdir, hidden: &hidden };
        let sandbox = Sandbox::WorkspaceWrite(Workspace { tmpdir: true, ..workspace() });
        let plan = Plan::new(&sandbox, places, resolve).unwrap().unwrap();
        assert_eq!(plan.roots, paths(&["/ws"]), "{tmpdir:?}");
    }
}

#[test]
fn what_is_protected_is_held_in_its_place() {
    let protect = paths(&["/ws/a/b/c", "/ws/.git", "/etc", "/ws/.git/hooks"]);
    let plan = plan(Workspace { protect, ..workspace() }, &["/ws/x/state", "/run/u"]).unwrap();
    assert_eq!(plan.protected, paths(&["/ws/.git", "/ws/a/b/c"]));
    assert_eq!(plan.hidden, paths(&["/run/u", "/ws/x/state"]));
    assert_eq!(plan.steadied, paths(&["/ws/a", "/ws/x", "/ws/a/b"]));
}

#[test]
fn what_cannot_be_protected_is_an_error() {
    let with = |path: &str| plan(Workspace { protect: paths(&[path]), ..workspace() }, &[]);
    let missing = SandboxError::Protect { path: "/ws/missing".into(), errno: Errno::NOENT };
    assert_eq!(with("/ws/missing"), Err(missing));
    assert_eq!(with("/ws/link"), Err(SandboxError::ProtectLink { path: "/ws/link".into() }));
    let inner = Workspace { cwd: false, roots: paths(&["/ws/a"]), ..workspace() };
    let above = plan(Workspace { protect: paths(&["/ws"]), ..inner }, &[]);
    assert_eq!(above, Err(SandboxError::ProtectAbove { path: "/ws".into() }));
    assert_eq!(with("/ws").unwrap().protected, paths(&["/ws"]), "all of a root");
}

#[test]
fn shared_memory_that_the_server_is_in_stays_as_it_is() {
    let plan = plan(workspace(), &["/dev/shm/state"]).unwrap();
    assert_eq!(plan.shared_memory, None);
}

#[test]
fn a_link_outside_of_the_roots_is_no_danger() {
    let (roots, protect) = (paths(&["/home/u"]), paths(&["/home/u/.git"]));
    let plan = plan(Workspace { roots, protect, ..workspace() }, &[]).unwrap();
    assert_eq!(plan.protected, paths(&["/usr/home/u/.git"]));
}

#[test]
fn only_namespaces_protect_and_hide() {
    let needs = |workspace: Workspace, hidden: &[&str]| plan(workspace, hidden).unwrap().needs();
    let online = || Workspace { network: Network::On, ..workspace() };
    assert_eq!(needs(workspace(), &["/state"]), None);
    assert_eq!(needs(online(), &[]), None);
    assert_eq!(needs(online(), &["/state"]), Some(Needs::Network));
    let inside = Needs::HiddenInRoot { path: "/ws/state".into() };
    assert_eq!(needs(workspace(), &["/ws/state"]), Some(inside));
    let protect = Workspace { protect: paths(&["/ws/.git"]), ..workspace() };
    assert_eq!(needs(protect, &[]), Some(Needs::Protect { path: "/ws/.git".into() }));
}
