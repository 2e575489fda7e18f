//! How policies are planned, on a made-up machine.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lastbyte_sys::Errno;
use lastbyte_sys::resolve::{FileId, Link, Resolved, Unresolved};

use super::error::{Needs, SandboxError};
use super::plan::{PathPlan, Places};
use super::root_record::Folders;
use super::{Network, Sandbox, Workspace};

/// `/ws/link` leads to `/etc`, `/home` to `/usr/home`.
fn resolve(path: &Path) -> Result<Resolved, Unresolved> {
    let found = find(path)?;
    let link = |path: &str| Link { path: path.into(), file: FileId::default(), above: vec![] };
    let links = ["/ws/link", "/home"].into_iter().filter(|link| path.starts_with(link));
    Ok(Resolved { links: links.map(link).collect(), ..found })
}

fn find(path: &Path) -> Result<Resolved, Errno> {
    let path = path.to_str().unwrap();
    let path =
        match path.strip_prefix("/home").filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(rest) => format!("/usr/home{rest}"),
            None => path.replace("/ws/link", "/etc"),
        };
    match path.as_str() {
        file if file.ends_with(".txt") => Ok(Resolved { path: file.into(), ..Resolved::default() }),
        missing if missing.contains("missing") => Err(Errno::NOENT),
        folder => Ok(Resolved { path: folder.into(), is_folder: true, ..Resolved::default() }),
    }
}

fn workspace() -> Workspace {
    Workspace { slash_tmp: false, tmpdir: false, ..Workspace::default() }
}

/// Without a temporary folder, home folders and files of the server.
fn places<'a>(cwd: &'a str, hidden: &'a [PathBuf], written: &'a Folders) -> Places<'a> {
    let cwd = Path::new(cwd);
    Places { cwd, tmpdir: None, hidden, protected: &[], homes: &[], config_home: None, written }
}

fn plan_at(cwd: &str, workspace: Workspace, hidden: &[&str]) -> Result<PathPlan, SandboxError> {
    let hidden: Vec<PathBuf> = hidden.iter().map(PathBuf::from).collect();
    let tmpdir = Some(OsStr::new("/var/tmp"));
    let none = Folders::default();
    let places = Places { tmpdir, ..places(cwd, &hidden, &none) };
    PathPlan::new(&Sandbox::WorkspaceWrite(workspace), places, resolve).map(|plan| plan.unwrap())
}

fn plan(workspace: Workspace, hidden: &[&str]) -> Result<PathPlan, SandboxError> {
    plan_at("/ws", workspace, hidden)
}

fn paths(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(PathBuf::from).collect()
}

#[test]
fn full_access_and_external_need_no_plan_and_resolve_no_path() {
    let hidden = paths(&["/state"]);
    let none = Folders::default();
    let places = places("/ws", &hidden, &none);
    let unused = |_: &Path| -> Result<Resolved, Unresolved> { panic!("an unnecessary resolve") };
    for sandbox in [Sandbox::FullAccess, Sandbox::External] {
        assert_eq!(PathPlan::new(&sandbox, places, unused), Ok(None));
    }
}

#[test]
fn read_only_has_no_roots_and_hides_what_is_the_servers() {
    let hidden = paths(&["/state/run", "/state", "/missing"]);
    let none = Folders::default();
    let places = places("/ws", &hidden, &none);
    let plan = PathPlan::new(&Sandbox::ReadOnly { network: Network::On }, places, resolve);
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
        let none = Folders::default();
        let places = Places { tmpdir, ..places("/ws", &hidden, &none) };
        let sandbox = Sandbox::WorkspaceWrite(Workspace { tmpdir: true, ..workspace() });
        let plan = PathPlan::new(&sandbox, places, resolve).unwrap().unwrap();
        assert_eq!(plan.roots, paths(&["/ws"]), "{tmpdir:?}");
    }
}

#[test]
fn what_is_protected_is_held_in_its_place() {
    let protect = paths(&["/ws/a/b/c", "/ws/.git", "/etc", "/ws/.git/hooks"]);
    let plan = plan(Workspace { protect, ..workspace() }, &["/ws/x/state", "/run/u"]).unwrap();
    assert_eq!(plan.protected, paths(&["/ws/.git", "/ws/a/b/c"]));
    assert_eq!(plan.hidden, paths(&["/run/u", "/ws/x/state"]));
    assert_eq!(plan.immovable, paths(&["/ws/a", "/ws/x", "/ws/a/b"]));
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

/// A command could open a folder that its owner may not search, or replace a file that is in the way.
#[test]
fn what_is_behind_an_obstacle_is_protected_with_it() {
    let closed = |path: &Path| match path.strip_prefix("/ws/home/closed") {
        Ok(rest) if rest != Path::new("") => {
            let at = find(Path::new("/ws/home/closed")).ok();
            Err(Unresolved { errno: Errno::ACCESS, at })
        }
        _ => resolve(path),
    };
    let with = |cwd: &str, protected: &str| {
        let (homes, none) = (paths(&["/ws/home/closed/me"]), Folders::default());
        let protected = paths(&[protected]);
        let places = Places { homes: &homes, protected: &protected, ..places(cwd, &[], &none) };
        let plan = PathPlan::new(&Sandbox::WorkspaceWrite(workspace()), places, closed);
        plan.map(|plan| (plan.as_ref().unwrap().protected.clone(), plan.unwrap().immovable))
    };
    let both = Ok((paths(&["/ws/home/closed"]), paths(&["/ws/home"])));
    assert_eq!(with("/ws", "/ws/home/closed/conf/lb.txt"), both, "home and settings");
    assert_eq!(with("/other", "/ws/home/closed/lb.txt"), Ok((vec![], vec![])), "not in a root");
    let (path, errno) = (PathBuf::from("/ws/home/closed/me"), Errno::ACCESS);
    assert_eq!(with("/ws/home/closed", "/a.txt"), Err(SandboxError::Protect { path, errno }));
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
fn a_link_that_a_confined_command_could_have_made_is_not_followed() {
    let with = |cwd: &str, roots: &[&str], written: &[(&str, u64)]| {
        let workspace = Workspace { cwd: false, roots: paths(roots), ..workspace() };
        let written = Folders::from_list(written, SystemTime::now());
        let places = places(cwd, &[], &written);
        PathPlan::new(&Sandbox::WorkspaceWrite(workspace), places, resolve)
            .map(|plan| plan.is_some())
    };
    let (path, link) = (PathBuf::from("/ws/link/x"), PathBuf::from("/ws/link"));
    let root = Err(SandboxError::RootLink { path: path.clone(), link: link.clone() });
    assert_eq!(with("/etc", &["/ws/link/x"], &[]), Ok(true), "its owner's");
    assert_eq!(with("/etc", &["/ws/link/x"], &[("/ws", 1)]), root, "an earlier policy");
    assert_eq!(with("/etc", &["/ws/link/x", "/ws"], &[]), root, "this policy");
    let cwd = Err(SandboxError::CwdLink { path, link });
    assert_eq!(with("/ws/link/x", &["/other"], &[("/ws", 1)]), cwd);
    assert_eq!(with("/home/u", &["/home/u"], &[("/home/u", 1), ("/tmp", 2)]), Ok(true));
}

#[test]
fn a_root_is_the_folder_that_it_was_at_its_first_use_or_a_newer_one() {
    let now = SystemTime::now();
    let with = |written: &[(&str, u64)], roots: &[&str], born: Option<SystemTime>| {
        let (roots, written) = (paths(roots), Folders::from_list(written, now));
        let workspace = Workspace { cwd: false, roots, ..workspace() };
        let places = places("/", &[], &written);
        let resolve = |path: &Path| resolve(path).map(|found| Resolved { born, ..found });
        PathPlan::new(&Sandbox::WorkspaceWrite(workspace), places, resolve)
            .map(|plan| plan.is_some())
    };
    let (before, after) = (now.checked_sub(Duration::from_secs(60)), Some(now));
    let (parent, other, same) = (("/ws", 1), ("/ws/a", 7), ("/ws/a", 0));
    let replaced = Err(SandboxError::RootReplaced { path: "/ws/a".into() });
    assert_eq!(with(&[parent, other], &["/ws/a"], before), replaced);
    assert_eq!(with(&[parent, other], &["/ws/a"], after), Ok(true), "made anew");
    assert_eq!(with(&[parent, other], &["/ws/a", "/ws"], before), Ok(true), "in another root");
    assert_eq!(with(&[parent, same], &["/ws/a"], before), Ok(true));
    assert_eq!(with(&[other], &["/ws/a"], before), Ok(true), "replaced by its owner");
}

/// The target may change between two calls, and each call slows the start down.
#[test]
fn a_path_is_resolved_once() {
    let asked = RefCell::new(Vec::new());
    let hidden = paths(&["/state/lastbyte", "/ws/state/missing"]);
    let none = Folders::default();
    let places = Places {
        tmpdir: Some(OsStr::new("/tmp")),
        protected: &paths(&["/state/lastbyte", "/ws/lastbyte.txt"]),
        homes: &paths(&["/ws", "/home/me"]),
        ..places("/ws", &hidden, &none)
    };
    let resolve = |path: &Path| {
        asked.borrow_mut().push(path.to_owned());
        resolve(path)
    };
    let workspace = Workspace { roots: paths(&["/ws", "/home/me"]), ..Workspace::default() };
    PathPlan::new(&Sandbox::WorkspaceWrite(workspace), places, resolve).unwrap().unwrap();
    let mut asked = asked.into_inner();
    let count = asked.len();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), count, "{asked:?}");
    assert!(asked.contains(&"/ws".into()) && asked.contains(&"/tmp".into()), "{asked:?}");
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
