//! Finds our own cgroup: its path within the hierarchy, and where that is mounted.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::controllers::without_server;

/// Why the folder of our own cgroup is unknown.
#[derive(Debug, thiserror::Error)]
pub enum NoFolder {
    #[error("cannot read {path}")]
    Read { path: &'static str, source: io::Error },
    #[error("this program is in no version 2 cgroup")]
    NoVersion2,
    #[error("cgroup {path} is not mounted", path = cgroup.display())]
    NotMounted { cgroup: PathBuf },
}

/// The folder of the cgroup that this program is in, or was before [`super::enable_controllers`].
pub fn own_folder() -> Result<PathBuf, NoFolder> {
    let read = |path| std::fs::read(path).map_err(|source| NoFolder::Read { path, source });
    let folder = locate(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)?;
    Ok(without_server(folder))
}

fn locate(cgroup: &[u8], mountinfo: &[u8]) -> Result<PathBuf, NoFolder> {
    let line = lines(cgroup).find_map(|line| line.strip_prefix(b"0::"));
    let own = Path::new(OsStr::from_bytes(line.ok_or(NoFolder::NoVersion2)?));
    let mounted = lines(mountinfo).find_map(|line| mounted_at(line, own));
    mounted.ok_or_else(|| NoFolder::NotMounted { cgroup: own.to_owned() })
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

/// Where a line of mountinfo shows this cgroup, if it mounts the version 2 hierarchy:
/// `ID PARENT DEVICE ROOT POINT OPTIONS [FIELD…] - TYPE SOURCE OPTIONS`. The root is the part of the
/// hierarchy that it shows.
fn mounted_at(line: &[u8], cgroup: &Path) -> Option<PathBuf> {
    let mut fields = line.split(|byte| *byte == b' ');
    let (root, point) = (unescape(fields.nth(3)?), unescape(fields.next()?));
    let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
    let inside = cgroup.strip_prefix(root).ok()?;
    // A cgroup above the root of our cgroup namespace is shown with `..`. It is not ours to use.
    let climbs = inside.components().any(|part| part.as_os_str() == "..");
    (kind == b"cgroup2" && !climbs).then(|| point.join(inside))
}

/// Decodes octal escapes for spaces and the like: `\040`.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cgroup: &str, mountinfo: &str, want: Option<&str>) {
        let found = locate(cgroup.as_bytes(), mountinfo.as_bytes());
        assert_eq!(found.ok(), want.map(PathBuf::from), "{cgroup:?} {mountinfo:?}");
    }

    #[test]
    fn a_hierarchy_of_its_own_is_found() {
        let mounts = "25 30 0:22 / /sys rw - sysfs sysfs rw\n\
                      29 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        check("0::/user.slice/a.scope\n", mounts, Some("/sys/fs/cgroup/user.slice/a.scope"));
        check("0::/\n", mounts, Some("/sys/fs/cgroup/"));
    }

    #[test]
    fn a_hybrid_mount_beside_version_1_is_found() {
        let cgroup = "4:memory:/process/1\n1:name=systemd:/x\n0::/y\n";
        let mounts = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        check(cgroup, mounts, Some("/sys/fs/cgroup/unified/y"));
    }

    #[test]
    fn a_mount_with_another_root_shows_only_what_is_below_it() {
        let mounts = "41 31 0:38 /box /mnt/a\\040b rw - cgroup2 none rw\n";
        check("0::/box/inner\n", mounts, Some("/mnt/a b/inner"));
        check("0::/boxer\n", mounts, None);
        let two = format!("{mounts}42 31 0:38 / /all rw - cgroup2 none rw\n");
        check("0::/boxer\n", &two, Some("/all/boxer"));
    }

    #[test]
    fn what_cannot_be_seen_is_not_guessed() {
        let mounts = "41 31 0:38 / /cgroup rw - cgroup2 none rw\n";
        check("0::/../outside\n", mounts, None);
        check("3:cpu:/\n", mounts, None);
        check("0::/a\n", "", None);
        check("0::/a\n", "cut off\n41 31 0:38 /\n", None);
    }
}
