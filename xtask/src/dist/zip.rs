//! Trees of files as zip archives, which wheels are.
//!
//! A gzip file is the deflated bytes between a header of 10 bytes and a trailer with the checksum and the length. Zip
//! has the same three in another order, so gzip can do the work.

use anyhow::{Context, Result, ensure};

use super::archive::{File, Tree, gzip};

/// 1 January 1980, the first day that zip has: the same files give the same archive.
const DATE: u32 = 0x0021_0000;
const DEFLATED: u16 = 8;
/// Of PKZIP 2.0, which has deflate, on unix.
const MADE_BY: u16 = 3 << 8 | 20;

/// What both headers of a file have.
struct Packed<'a> {
    path: &'a str,
    file: &'a File,
    checksum: [u8; 4],
    deflated: Vec<u8>,
}

pub(super) fn zip(tree: &Tree) -> Result<Vec<u8>> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (path, file) in &tree.0 {
        let packed = Packed::new(path, file)?;
        let at = u32::try_from(archive.len())?;
        archive.extend(b"PK\x03\x04");
        archive.extend(packed.shared()?);
        archive.extend(path.as_bytes());
        archive.extend(&packed.deflated);
        directory.extend(b"PK\x01\x02");
        directory.extend(MADE_BY.to_le_bytes());
        directory.extend(packed.shared()?);
        // No comment, on the first disk, not known to be text.
        directory.extend([0; 6]);
        directory.extend((0o100_000 | file.mode).checked_shl(16).context("mode")?.to_le_bytes());
        directory.extend(at.to_le_bytes());
        directory.extend(path.as_bytes());
    }
    let (at, count) = (u32::try_from(archive.len())?, u16::try_from(tree.0.len())?);
    archive.extend(&directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend(count.to_le_bytes());
    archive.extend(count.to_le_bytes());
    archive.extend(u32::try_from(directory.len())?.to_le_bytes());
    archive.extend(at.to_le_bytes());
    archive.extend([0; 2]);
    Ok(archive)
}

impl<'a> Packed<'a> {
    fn new(path: &'a str, file: &'a File) -> Result<Self> {
        let mut deflated = gzip(&file.bytes)?;
        ensure!(deflated.len() >= 18 && deflated[3] == 0, "gzip wrote another header");
        let trailer = deflated.split_off(deflated.len() - 8);
        let checksum = [trailer[0], trailer[1], trailer[2], trailer[3]];
        deflated.drain(..10);
        Ok(Self { path, file, checksum, deflated })
    }

    fn shared(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![20, 0, 0, 0];
        bytes.extend(DEFLATED.to_le_bytes());
        bytes.extend(DATE.to_le_bytes());
        bytes.extend(self.checksum);
        bytes.extend(u32::try_from(self.deflated.len())?.to_le_bytes());
        bytes.extend(u32::try_from(self.file.bytes.len())?.to_le_bytes());
        bytes.extend(u16::try_from(self.path.len())?.to_le_bytes());
        bytes.extend([0; 2]);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn python_reads_what_is_written() {
        let mut tree = Tree::default();
        tree.add("a/b", "text ".repeat(1000));
        tree.add_program("c", "");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.zip");
        std::fs::write(&file, zip(&tree).unwrap()).unwrap();
        let script = "import sys, zipfile\n\
            archive = zipfile.ZipFile(sys.argv[1])\n\
            assert archive.testzip() is None\n\
            for entry in archive.infolist():\n\
            \x20   print(entry.filename, len(archive.read(entry)), oct(entry.external_attr >> 16), entry.date_time[0])";
        let mut python = Command::new("python3");
        let printed = super::super::output(python.args(["-c", script]).arg(&file)).unwrap();
        assert_eq!(
            String::from_utf8(printed).unwrap(),
            "a/b 5000 0o100644 1980\nc 0 0o100755 1980\n"
        );
    }
}
