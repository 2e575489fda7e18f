//! Resolves a path, and records the symbolic links on the way.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, StatxTimestamp, openat,
    openat2, readlinkat, statx,
};
use rustix::io::Errno;

/// Identifies a file or folder whatever its name: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

/// What a path resolves to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolved {
    /// Absolute and without links.
    pub path: PathBuf,
    pub file: FileId,
    pub is_folder: bool,
    /// The creation time, if the file system records it.
    pub born: Option<SystemTime>,
    /// The links followed, in order.
    pub links: Vec<Link>,
}

/// A symbolic link on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its parent is resolved, without links.
    pub path: PathBuf,
    /// The link itself, not its target.
    pub file: FileId,
    /// All folders above it, up to the root.
    pub above: Vec<FileId>,
}

/// Why a path does not resolve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    pub errno: Errno,
    /// For EACCES the folder that may not be searched, for ENOTDIR the file in place of a folder.
    pub at: Option<Resolved>,
}

impl From<Errno> for Unresolved {
    fn from(errno: Errno) -> Self {
        Self { errno, at: None }
    }
}

impl FileId {
    pub(crate) fn from_statx(found: &Statx) -> Self {
        let device = (u64::from(found.stx_dev_major) << 32) | u64::from(found.stx_dev_minor);
        Self { device, inode: found.stx_ino }
    }
}

/// Resolves an absolute path.
pub fn resolve(path: &Path) -> Result<Resolved, Unresolved> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, path, PATH_ONLY, Mode::empty(), resolve) {
        // Without links, `.` and `..` can be removed textually.
        Ok(file) => Ok(found(&file, without_dots(path), Vec::new())?),
        // There are links, or the kernel or a seccomp filter does not allow the call.
        Err(Errno::LOOP | Errno::NOSYS | Errno::PERM) => PathWalk::new(path)?.finish(),
        // To learn where it failed.
        Err(Errno::ACCESS | Errno::NOTDIR) => PathWalk::new(path)?.finish(),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether a path leads to a folder: if not, why.
pub fn check_folder(path: &Path) -> Result<(), Errno> {
    match path.metadata() {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Errno::NOTDIR),
        // A path with a NUL has no error number.
        Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL)),
    }
}

const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const MOST_LINKS: usize = 40;

fn found(file: impl AsFd, path: PathBuf, links: Vec<Link>) -> Result<Resolved, Errno> {
    let (found, kind) = look(file)?;
    let known = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    let born = to_time(found.stx_btime).filter(|_| known);
    let is_folder = kind == FileType::Directory;
    Ok(Resolved { path, file: FileId::from_statx(&found), is_folder, born, links })
}

fn look(file: impl AsFd) -> Result<(Statx, FileType), Errno> {
    let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::BTIME;
    let found = statx(file, c"", AtFlags::EMPTY_PATH, wanted)?;
    Ok((found, FileType::from_raw_mode(found.stx_mode.into())))
}

pub(crate) fn to_time(time: StatxTimestamp) -> Option<SystemTime> {
    let since = Duration::new(u64::try_from(time.tv_sec).ok()?, time.tv_nsec);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                plain.push(component);
            }
        }
    }
    plain
}

/// Resolves one component at a time.
struct PathWalk {
    at: OwnedFd,
    path: PathBuf,
    /// The folders of `path`, including the last one.
    above: Vec<FileId>,
    links: Vec<Link>,
    left: VecDeque<OsString>,
}

impl PathWalk {
    fn new(path: &Path) -> Result<Self, Errno> {
        let at = openat(CWD, c"/", PATH_ONLY, Mode::empty())?;
        let top = FileId::from_statx(&look(&at)?.0);
        let left = path.components().map(|part| part.as_os_str().to_owned()).collect();
        Ok(Self { at, path: "/".into(), above: vec![top], links: Vec::new(), left })
    }

    fn finish(mut self) -> Result<Resolved, Unresolved> {
        while let Some(name) = self.left.pop_front() {
            let step = match name.as_encoded_bytes() {
                b"/" => self.restart(),
                b"." => Ok(()),
                b".." => self.up(),
                _ => self.down(&name),
            };
            match step {
                Ok(()) => {}
                Err(errno @ (Errno::ACCESS | Errno::NOTDIR)) => {
                    let at = Some(found(&self.at, self.path, self.links)?);
                    return Err(Unresolved { errno, at });
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(found(&self.at, self.path, self.links)?)
    }

    fn restart(&mut self) -> Result<(), Errno> {
        self.at = openat(CWD, c"/", PATH_ONLY, Mode::empty())?;
        self.path = "/".into();
        self.above.truncate(1);
        Ok(())
    }

    fn up(&mut self) -> Result<(), Errno> {
        self.at = openat(&self.at, c"..", PATH_ONLY, Mode::empty())?;
        if self.path.pop() {
            self.above.pop();
        }
        Ok(())
    }

    fn down(&mut self, name: &OsStr) -> Result<(), Errno> {
        let next = openat(&self.at, name, PATH_ONLY | OFlags::NOFOLLOW, Mode::empty())?;
        let (found, kind) = look(&next)?;
        let file = FileId::from_statx(&found);
        if kind == FileType::Symlink {
            return self.follow(&next, file, name);
        }
        self.at = next;
        self.path.push(name);
        self.above.push(file);
        Ok(())
    }

    fn follow(&mut self, link: &OwnedFd, file: FileId, name: &OsStr) -> Result<(), Errno> {
        let (path, above) = (self.path.join(name), self.above.clone());
        self.links.push(Link { path, file, above });
        if self.links.len() > MOST_LINKS {
            return Err(Errno::LOOP);
        }
        let target = readlinkat(link, c"", Vec::new())?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        for part in target.components().rev() {
            self.left.push_front(part.as_os_str().to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_and_told() {
        let folder = tempfile::tempdir().expect("folder");
        let top = folder.path().canonicalize().expect("there");
        fs::create_dir_all(top.join("a/b")).expect("made");
        symlink("b/../b", top.join("a/relative")).expect("link");
        symlink(top.join("a/relative"), top.join("absolute")).expect("link");
        let real = resolve(&top.join("a/b")).expect("there");
        assert_eq!((&real.path, real.is_folder), (&top.join("a/b"), true));
        assert_eq!(real.links, []);
        let led = resolve(&top.join("absolute/.")).expect("there");
        assert_eq!((&led.path, led.file), (&real.path, real.file));
        let links: Vec<&PathBuf> = led.links.iter().map(|link| &link.path).collect();
        assert_eq!(links, [&top.join("absolute"), &top.join("a/relative")]);
        let above = resolve(&top.join("a")).expect("there").file;
        assert_eq!(led.links[1].above.last(), Some(&above));
    }

    #[test]
    fn dots_without_links_lead_where_they_say() {
        let folder = tempfile::tempdir().expect("folder");
        let top = folder.path().canonicalize().expect("there");
        fs::create_dir_all(top.join("a/b")).expect("made");
        let found = resolve(&top.join("a/./b/../../a")).expect("there");
        assert_eq!(found.path, top.join("a"));
        assert_eq!(resolve(Path::new("/..")).map(|found| found.path), Ok("/".into()));
        assert_eq!(resolve(&top.join("no/../a")), Err(Errno::NOENT.into()));
    }

    #[test]
    fn a_path_that_does_not_resolve_says_where_it_ends() {
        let folder = tempfile::tempdir().expect("folder");
        let top = folder.path().canonicalize().expect("there");
        fs::write(top.join("file"), "").expect("written");
        symlink("file/x", top.join("link")).expect("link");
        for (way, links) in [("file/x/y", vec![]), ("link", vec![top.join("link")])] {
            let Unresolved { errno, at } = resolve(&top.join(way)).expect_err("no folder");
            let at = at.expect("known");
            assert_eq!((errno, &at.path), (Errno::NOTDIR, &top.join("file")), "{way}");
            assert_eq!(at.links.into_iter().map(|link| link.path).collect::<Vec<_>>(), links);
        }
    }

    #[test]
    fn a_circle_of_links_ends() {
        let folder = tempfile::tempdir().expect("folder");
        symlink("circle", folder.path().join("circle")).expect("link");
        assert_eq!(resolve(&folder.path().join("circle")), Err(Errno::LOOP.into()));
    }
}
