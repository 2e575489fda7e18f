//! Allocations and context switches of a program, counted by a preloaded library.
//!
//! A counting allocator in the program itself would be test code in what is shipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::TIMER_THREAD;

const SOURCE: &str = include_str!("preload.c");
/// The size of `struct counts`.
const FILE_LEN: usize = 4096;

pub(super) struct Preload {
    library: PathBuf,
    file: PathBuf,
}

impl Preload {
    /// Builds the library.
    pub(super) fn build(folder: &Path) -> Result<Self> {
        let (source, library) = (folder.join("preload.c"), folder.join("preload.so"));
        fs::write(&source, SOURCE)?;
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-shared", "-fPIC", "-ftls-model=initial-exec", "-o"]);
        let built = cc.arg(&library).arg(&source).status().context("cannot run cc")?;
        ensure!(built.success(), "cc does not build preload.c: it needs glibc");
        Ok(Self { library, file: folder.join("counts") })
    }

    /// Makes the program of this command count from 0.
    pub(super) fn load_into(&self, command: &mut Command) -> Result<()> {
        fs::write(&self.file, [0; FILE_LEN])?;
        command.env("LD_PRELOAD", &self.library).env("LASTBYTE_COST_FILE", &self.file);
        Ok(())
    }

    /// The allocations and context switches of a program that runs.
    pub(super) fn of_running(&self, pid: u32) -> Result<[u64; 2]> {
        let (mut switches, mut has_timer_thread) = (0, false);
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let folder = task?.path();
            if is_timer_thread(&folder) {
                has_timer_thread = true;
                continue;
            }
            // A thread may end at any time; then its switches are missing in one batch.
            let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
            let number =
                status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            switches += number.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0);
        }
        ensure!(has_timer_thread, "the server has no thread {TIMER_THREAD:?}: was it renamed?");
        Ok([self.allocations(Some(pid))?, switches])
    }

    /// The allocations and context switches of all programs that have ended.
    pub(super) fn of_ended(&self) -> Result<[u64; 2]> {
        Ok([self.allocations(None)?, self.numbers()?[0]])
    }

    fn allocations(&self, pid: Option<u32>) -> Result<u64> {
        let numbers = self.numbers()?;
        let is_counted = |tid: u64| match pid {
            Some(pid) => !is_timer_thread(Path::new(&format!("/proc/{pid}/task/{tid}"))),
            None => true,
        };
        let threads = numbers[2..].chunks_exact(2).filter(|thread| is_counted(thread[0]));
        let allocations = threads.map(|thread| thread[1]).sum();
        ensure!(allocations > 0, "no allocations are counted: is the program linked with glibc?");
        Ok(allocations)
    }

    fn numbers(&self) -> Result<Vec<u64>> {
        let bytes = fs::read(&self.file)?;
        let number = |bytes: &[u8]| Ok(u64::from_ne_bytes(bytes.try_into()?));
        bytes.chunks_exact(8).map(number).collect()
    }
}

fn is_timer_thread(task: &Path) -> bool {
    fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == TIMER_THREAD)
}
