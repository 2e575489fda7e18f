//! Compacts the journal while it is in use.

use std::io;
use std::sync::{Arc, PoisonError};

use lastbyte_sys::memory;
use tokio::task::spawn_blocking;

use super::compaction::{Compacted, write_synced};
use super::file::Journal;
use super::store::Store;

impl Journal {
    /// Writes pending records, and compacts the file if it has grown too large. That waits for the
    /// disk on a blocking thread; appends do not wait for it.
    pub(crate) async fn maintain(self: Arc<Self>) {
        self.maintain_if(Store::is_due).await;
    }

    /// As [`Journal::maintain`], for the last time: no forgotten output stays in the file.
    pub(crate) async fn maintain_on_close(self: Arc<Self>) {
        self.maintain_if(Store::is_due_on_close).await;
    }

    async fn maintain_if(self: Arc<Self>, is_due: fn(&Store) -> bool) {
        self.write();
        let (due, has_reserve) = {
            let store = self.store();
            (is_due(&store), store.reserve.is_there())
        };
        if !due && has_reserve {
            return;
        }
        // If it panics, the old file is still there, and the next call tries again.
        _ = spawn_blocking(move || {
            if due {
                self.compact();
                // For a moment it needs as much memory as all processes take.
                memory::trim();
            }
            self.store().keep_reserve();
        })
        .await;
    }

    pub(super) fn compact(&self) {
        // It guards no data that a panic could leave half changed.
        let _one_at_a_time = self.compacting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.change(Store::empty_if_nothing_lives) {
            return;
        }
        let compacted = match self.compacted() {
            Err(_) if self.store().compact_in_reserve() => self.compacted(),
            compacted => compacted,
        };
        self.change(|store| {
            store.compacts_in_reserve = false;
            // If the file cannot be replaced now, it stays in use, and the next call tries again.
            if compacted.and_then(|compacted| store.switch_to(compacted)).is_err() {
                store.thin_out();
            }
        });
    }

    fn compacted(&self) -> io::Result<Compacted> {
        let compaction = self.store().compaction()?;
        compaction.run(write_synced)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::path::PathBuf;
    use std::sync::mpsc;
    use std::thread;

    use lastbyte_testkit::PATIENCE;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use tokio::sync::oneshot;

    use super::*;
    use crate::Id;
    use crate::journal::Opening;
    use crate::journal::SetAside;
    use crate::journal::record::Record;
    use crate::journal::sample::launched;

    /// More than a pipe takes, and not so much that it is a quarter of the file.
    const STAY: usize = 1200;

    fn overgrown(folder: &std::path::Path) -> (Arc<Journal>, Vec<Id>) {
        let (journal, _) =
            Journal::open(folder, &mut SetAside::new(folder), Opening::AtStart).unwrap();
        let stay: Vec<Id> = (0..STAY).map(|_| Id::fresh()).collect();
        for id in &stay {
            journal.append(&launched(*id, None));
        }
        while !journal.store().is_due() {
            let id = Id::fresh();
            journal.append(&launched(id, None));
            journal.forgotten(id);
        }
        (Arc::new(journal), stay)
    }

    /// A disk that takes one byte of the new file, signals that, and takes the rest on request.
    fn slow_disk(
        new: PathBuf,
        begun: oneshot::Sender<()>,
        go_on: mpsc::Receiver<()>,
    ) -> thread::JoinHandle<bool> {
        mknodat(CWD, &new, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        thread::spawn(move || {
            let mut fifo = File::open(new).unwrap();
            fifo.read_exact(&mut [0]).unwrap();
            begun.send(()).unwrap();
            let told = go_on.recv_timeout(PATIENCE).is_ok();
            fifo.read_to_end(&mut Vec::new()).unwrap();
            told
        })
    }

    #[tokio::test(flavor = "current_thread")]
    async fn neither_the_runtime_nor_an_append_waits_for_the_disk_of_a_smaller_file() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, mut stay) = overgrown(folder.path());
        let (begun, has_begun) = oneshot::channel();
        let (go_on, may_go_on) = mpsc::channel();
        let disk = slow_disk(folder.path().join("journal.new"), begun, may_go_on);
        let maintaining = tokio::spawn(Arc::clone(&journal).maintain());
        has_begun.await.unwrap();
        stay.push(Id::fresh());
        journal.append(&launched(stay[STAY], None));
        journal.append(&Record::Started { id: stay[0], pid: 7 });
        assert!(!maintaining.is_finished(), "the disk is still busy");
        // Fails only if the disk has timed out, which is checked next.
        _ = go_on.send(());
        assert!(disk.join().unwrap(), "something waited for the disk");
        maintaining.await.unwrap();
        // A pipe cannot be synced, so the old file goes on.
        assert!(journal.store().is_due());
        Arc::clone(&journal).maintain().await;
        assert!(!journal.store().is_due());
        drop(journal);
        let (_journal, replayed) =
            Journal::open(folder.path(), &mut SetAside::new(folder.path()), Opening::AtStart)
                .unwrap();
        assert_eq!(replayed.pasts.keys().copied().collect::<Vec<_>>(), stay);
        assert_eq!(replayed.pasts[&stay[0]].pid, Some(7));
    }
}
