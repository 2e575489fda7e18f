//! Trees of files as `tar`, `ar` and gzip, byte for byte the same for the same files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, ensure};

/// Files by their path, sorted.
#[derive(Debug, Default)]
pub(super) struct Tree(pub(super) BTreeMap<String, File>);

#[derive(Debug)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    pub(super) mode: u32,
}

impl Tree {
    pub(super) fn add(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), File { bytes: bytes.into(), mode: 0o644 });
    }

    pub(super) fn add_program(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), File { bytes: bytes.into(), mode: 0o755 });
    }

    /// Adds the files of a folder and of those below it for which `wanted` is true.
    pub(super) fn add_folder(
        &mut self,
        folder: &Path,
        prefix: &str,
        wanted: fn(&str) -> bool,
    ) -> Result<()> {
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                self.add_folder(&entry.path(), &format!("{prefix}{name}/"), wanted)?;
            } else if wanted(&name) {
                self.add(format!("{prefix}{name}"), fs::read(entry.path())?);
            }
        }
        Ok(())
    }

    /// A `tar` archive of regular files that belong to root, without their folders.
    pub(super) fn tar(&self, prefix: &str, time: u64) -> Result<Vec<u8>> {
        self.write_tar(prefix, time, &BTreeSet::new())
    }

    /// The same with the folders, each before what is in it.
    pub(super) fn tar_with_folders(&self, prefix: &str, time: u64) -> Result<Vec<u8>> {
        let parents = |path: &str| {
            let parents = Path::new(path).ancestors().skip(1);
            parents.map(|parent| parent.display().to_string()).collect::<Vec<_>>()
        };
        let folders = self.0.keys().flat_map(|path| parents(path)).collect();
        self.write_tar(prefix, time, &folders)
    }

    fn write_tar(&self, prefix: &str, time: u64, folders: &BTreeSet<String>) -> Result<Vec<u8>> {
        let mut archive = Vec::new();
        for folder in folders {
            let end = if folder.is_empty() { "" } else { "/" };
            let header = header(&format!("{prefix}{folder}{end}"), 0o755, 0, time, b'5')?;
            archive.extend(header);
        }
        for (path, file) in &self.0 {
            let header =
                header(&format!("{prefix}{path}"), file.mode, file.bytes.len(), time, b'0')?;
            archive.extend(header);
            archive.extend(&file.bytes);
            archive.resize(archive.len().next_multiple_of(BLOCK), 0);
        }
        archive.resize(archive.len() + 2 * BLOCK, 0);
        Ok(archive)
    }
}

const BLOCK: usize = 512;

/// The header of one entry, in the ustar format of POSIX.
fn header(path: &str, mode: u32, size: usize, time: u64, kind: u8) -> Result<[u8; BLOCK]> {
    ensure!(path.len() < 100, "the path {path} is too long for a tar header");
    let mut header = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, path.as_bytes());
    put(100, format!("{mode:07o}").as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{size:011o}").as_bytes());
    put(136, format!("{time:011o}").as_bytes());
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(265, b"root");
    put(297, b"root");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

/// An `ar` archive of these members, in this order.
pub(super) fn ar(members: &[(&str, &[u8])], time: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let header =
            format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", bytes.len());
        archive.extend(header.as_bytes());
        archive.extend(*bytes);
        if bytes.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

/// Compresses with the system's gzip, without a name and a time.
#[expect(clippy::disallowed_methods, reason = "it starts a tool as a user does")]
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = Command::new("gzip")
        .args(["-9", "--no-name", "--stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run gzip")?;
    let mut stdin = gzip.stdin.take().context("no standard input")?;
    let output = thread::scope(|scope| {
        let written = scope.spawn(move || stdin.write_all(bytes));
        let output = gzip.wait_with_output();
        written.join().map_err(|_| anyhow::anyhow!("the writer panicked"))??;
        anyhow::Ok(output?)
    })?;
    ensure!(output.status.success(), "gzip failed");
    Ok(output.stdout)
}

pub(super) fn make_executable(path: &Path) -> Result<()> {
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_s_tar_reads_what_is_written() {
        let mut tree = Tree::default();
        tree.add("share/doc/b", "two");
        tree.add_program("bin/a", vec![7; 1000]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.tar.gz");
        fs::write(&file, gzip(&tree.tar_with_folders("./", 86_400).unwrap()).unwrap()).unwrap();
        let mut tar = Command::new("tar");
        tar.args(["--list", "--verbose", "--utc", "--file"]).arg(&file);
        let listed = String::from_utf8(super::super::output(&mut tar).unwrap()).unwrap();
        let listed: Vec<Vec<&str>> =
            listed.lines().map(|line| line.split_whitespace().collect()).collect();
        let want = [
            ["drwxr-xr-x", "root/root", "0", "1970-01-02", "00:00", "./"],
            ["drwxr-xr-x", "root/root", "0", "1970-01-02", "00:00", "./bin/"],
            ["drwxr-xr-x", "root/root", "0", "1970-01-02", "00:00", "./share/"],
            ["drwxr-xr-x", "root/root", "0", "1970-01-02", "00:00", "./share/doc/"],
            ["-rwxr-xr-x", "root/root", "1000", "1970-01-02", "00:00", "./bin/a"],
            ["-rw-r--r--", "root/root", "3", "1970-01-02", "00:00", "./share/doc/b"],
        ];
        assert_eq!(listed, want);
    }

    #[test]
    fn an_odd_member_is_padded() {
        let archive = ar(&[("a", b"1"), ("b", b"22")], 0);
        assert_eq!(archive.len(), 8 + 60 + 2 + 60 + 2);
        assert!(archive.ends_with(b"`\n22"));
    }
}
