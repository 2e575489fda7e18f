//! The registry: memory that a keeper and its worker share, with a slot for each process.
//!
//! It outlives the worker, because the keeper has it too. The worker enters a process before its
//! leader is cloned, and each descriptor while it is in use. So whenever the worker dies, the keeper
//! knows whose statuses to keep and which descriptors must stay open, and the next worker finds
//! everything in its place.
//!
//! A slot belongs to one worker at a time; the keeper changes only what it says below. All of it is
//! atomic numbers: a worker can die between any two of them.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use rustix::fs::{fstat, ftruncate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};

use crate::child::{Status, Usage};
use crate::memory_file;

/// How many processes can be in a registry at the same time.
pub const SLOTS: usize = 1 << 15;

/// How many numbers of a slot only the worker reads and writes.
pub const NOTES: usize = 28;

/// Changes with every change of the layout that an older program would misread.
pub const VERSION: u32 = 3;

const MAGIC: u32 = 0x6c62_7265;

/// What a descriptor of a slot is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Purpose {
    /// Standard output or both streams: a pipe, or our end of a terminal.
    Output,
    /// Standard error, if it has a pipe of its own.
    Error,
    /// The two ends of the pipe that a terminal's output goes through.
    Gathered,
    Gathering,
    /// The command's end of its terminal.
    Terminal,
    /// Our end of standard input: a pipe, or our end of the terminal again.
    Input,
    /// The input that was accepted, written or not.
    Accepted,
    /// The secrets to mask in the output, and how far that has come.
    Secrets,
    /// Output that is not masked yet, of each stream.
    Staged,
    StagedError,
}

impl Purpose {
    pub const ALL: [Self; 10] = [
        Self::Output,
        Self::Error,
        Self::Gathered,
        Self::Gathering,
        Self::Terminal,
        Self::Input,
        Self::Accepted,
        Self::Secrets,
        Self::Staged,
        Self::StagedError,
    ];
}

/// Numbers that concern all processes.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    magic: AtomicU32,
    version: AtomicU32,
    /// Which worker this is: 1, 2, 3 and so on. Written by the keeper before it starts one.
    pub generation: AtomicU32,
    /// No slot from this one on was ever used: they take no memory.
    unused_from: AtomicU32,
    /// The worker leaves on purpose: whatever is not 0 is its business with the keeper.
    pub leaving: AtomicU32,
    /// When the worker last showed that it lives, in milliseconds of the monotonic clock.
    pub heartbeat: AtomicU64,
    /// The epoch of the feed and the number of its newest event.
    pub feed: [AtomicU64; 2],
    /// The key of the tags and how many there were.
    pub tags: [AtomicU64; 2],
}

/// How far a leader has come. It never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leader {
    /// It is not born, or its status must be kept.
    Kept,
    /// Its ending is journalled: its parent reaps it.
    Released,
    /// Its number may be another's by now.
    Reaped,
}

/// The bits of the same, which are only ever added while a slot is used.
const RELEASED: u32 = 1;
const REAPED: u32 = 2;
/// The worker has no more use for the slot of a leader that the keeper has yet to reap. Of the two,
/// the one that adds its bit last frees the slot, so nobody frees one that is another's by then.
const ABANDONED: u32 = 4;

/// How a leader ended, as its keeper saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    pub status: Status,
    pub usage: Usage,
    /// Whether it has executed its program: one that was killed before that has not run.
    pub executed: bool,
    /// When it was seen, in nanoseconds of unix time and of the monotonic clock.
    pub at: [u64; 2],
}

/// The numbers of one slot.
#[derive(Debug)]
#[repr(C, align(64))]
struct Words {
    used: AtomicU32,
    /// Of the worker that cloned the leader: its own child, and the keeper's after its death.
    generation: AtomicU32,
    /// Written by the kernel before the leader runs.
    pid: AtomicI32,
    /// Written by the leader: 1 just before it executes its program, 2 if it could not.
    step: AtomicU32,
    leader: AtomicU32,
    /// Written by the keeper, after the numbers of the exit.
    exited: AtomicU32,
    id: [AtomicU64; 2],
    /// Generation and number; 0 if there is none.
    descriptors: [AtomicU64; Purpose::ALL.len()],
    exit: [AtomicU64; 7],
    notes: [AtomicU64; NOTES],
}

const _: () = assert!(size_of::<Words>() <= 512, "a slot is small");

#[repr(C, align(4096))]
struct Memory {
    header: Header,
    slots: [Words; SLOTS],
}

/// The shared memory, mapped until this program ends. Cheap to copy.
#[derive(Clone, Copy)]
pub struct Registry {
    memory: &'static Memory,
}

impl Registry {
    /// A new one, and the file that others can map it from.
    pub fn create() -> io::Result<(Self, OwnedFd)> {
        let file = memory_file::create("lastbyte registry")?;
        ftruncate(&file, size_of::<Memory>() as u64)?;
        let registry = Self { memory: map(&file)? };
        let header = registry.header();
        header.version.store(VERSION, Ordering::SeqCst);
        header.magic.store(MAGIC, Ordering::SeqCst);
        Ok((registry, file))
    }

    /// The registry of this file.
    pub fn open(file: impl AsFd) -> io::Result<Self> {
        let size = fstat(&file)?.st_size;
        let other = || io::Error::new(io::ErrorKind::InvalidData, "a registry of another version");
        if size != size_of::<Memory>() as i64 {
            return Err(other());
        }
        let registry = Self { memory: map(&file)? };
        let header = registry.header();
        let found = [&header.magic, &header.version].map(|word| word.load(Ordering::SeqCst));
        if found == [MAGIC, VERSION] { Ok(registry) } else { Err(other()) }
    }

    pub fn header(&self) -> &'static Header {
        &self.memory.header
    }

    /// The slots that are in use.
    pub fn used(&self) -> impl Iterator<Item = Place> + use<> {
        let Memory { header, slots } = self.memory;
        let is_used = |words: &&Words| words.used.load(Ordering::SeqCst) == USED;
        let unused_from = header.unused_from.load(Ordering::SeqCst) as usize;
        slots.iter().take(unused_from).filter(is_used).map(|words| Place { words })
    }

    /// Enters a process whose leader this worker will clone. `None` if all slots are in use.
    pub fn enter(&self, id: u128) -> Option<Arc<Slot>> {
        let Memory { header, slots } = self.memory;
        let (seq, relaxed) = (Ordering::SeqCst, Ordering::Relaxed);
        let first = LOWEST_FREE.load(relaxed);
        let (before, after) = slots.split_at(first.min(SLOTS));
        let (words, index) = after.iter().zip(first..).chain(before.iter().zip(0..)).find(
            |(Words { used, .. }, index)| {
                // Before it is used: readers of the registry look no further than this.
                header.unused_from.fetch_max(*index as u32 + 1, seq);
                used.compare_exchange(FREE, USED, seq, relaxed).is_ok()
            },
        )?;
        LOWEST_FREE.store(index + 1, relaxed);
        let place = Place { words };
        // A worker that took over may have added bits after the keeper had freed it.
        words.leader.store(0, Ordering::SeqCst);
        words.generation.store(self.generation(), Ordering::SeqCst);
        place.set_id(id);
        Some(Arc::new(Slot { place, index, registry: *self, is_ours: AtomicBool::new(true) }))
    }

    /// The slot of a process that an earlier worker entered. Only one handle of it may be made. It
    /// stays as it is until it is [ours](Slot::own).
    pub fn take_over(&self, place: Place) -> Arc<Slot> {
        // It is not known which one it is, so the next search finds it in its turn.
        Arc::new(Slot { place, index: 0, registry: *self, is_ours: AtomicBool::new(false) })
    }

    fn generation(&self) -> u32 {
        self.header().generation.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Registry").field("header", self.header()).finish_non_exhaustive()
    }
}

/// Where a process is entered. For the keeper, and for a worker that takes over.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    words: &'static Words,
}

impl Place {
    /// 0 if the worker died while it was entered.
    pub fn id(self) -> u128 {
        let [high, low] = &self.words.id;
        u128::from(high.load(Ordering::SeqCst)) << 64 | u128::from(low.load(Ordering::SeqCst))
    }

    fn set_id(self, id: u128) {
        let [high, low] = &self.words.id;
        high.store((id >> 64) as u64, Ordering::SeqCst);
        low.store(id as u64, Ordering::SeqCst);
    }

    /// Of the worker whose child the leader is.
    pub fn generation(self) -> u32 {
        self.words.generation.load(Ordering::SeqCst)
    }

    /// `None` if the leader was never born.
    pub fn pid(self) -> Option<i32> {
        Some(self.words.pid.load(Ordering::SeqCst)).filter(|pid| *pid != 0)
    }

    /// Whether the leader came to execute its program, as far as it said itself.
    pub fn has_executed(self) -> bool {
        self.words.step.load(Ordering::SeqCst) == 1
    }

    /// For the leader: it is about to execute its program.
    pub(crate) fn executes(self) {
        self.words.step.store(1, Ordering::SeqCst);
    }

    /// For the leader: it exits, because it could not.
    pub(crate) fn has_failed(self) {
        self.words.step.store(2, Ordering::SeqCst);
    }

    /// The leader is about to be born, or nothing came of it and it is about to be reaped.
    pub(crate) fn forget_leader(self) {
        self.words.pid.store(0, Ordering::SeqCst);
        self.words.step.store(0, Ordering::SeqCst);
    }

    pub fn leader(self) -> Leader {
        match self.words.leader.load(Ordering::SeqCst) {
            bits if bits & REAPED != 0 => Leader::Reaped,
            bits if bits & RELEASED != 0 => Leader::Released,
            _ => Leader::Kept,
        }
    }

    /// Its ending is journalled.
    pub fn release(self) {
        self.add(RELEASED);
    }

    /// For a worker: it has reaped the leader, which was its own child.
    pub(crate) fn reaped_by_worker(self) {
        self.add(REAPED);
    }

    /// Returns the bits before.
    fn add(self, bit: u32) -> u32 {
        self.words.leader.fetch_or(bit, Ordering::SeqCst)
    }

    /// Generation and number of a descriptor in use.
    pub fn descriptor(self, purpose: Purpose) -> Option<(u32, RawFd)> {
        let word = self.words.descriptors[purpose as usize].load(Ordering::SeqCst);
        (word != 0).then_some(((word >> 32) as u32, word as u32 as RawFd))
    }

    /// Enters a descriptor under this generation; that worker's stand-in has it too.
    pub fn set_descriptor(self, purpose: Purpose, entered: Option<(u32, RawFd)>) {
        let word = |(generation, number): (u32, RawFd)| {
            u64::from(generation) << 32 | u64::from(number.unsigned_abs())
        };
        let word = entered.map_or(0, word);
        self.words.descriptors[purpose as usize].store(word, Ordering::SeqCst);
    }

    /// What the keeper has seen of the leader's exit.
    pub fn exit(self) -> Option<Exit> {
        if self.words.exited.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let [code, user, system, peak_memory, wall, clock, executed] =
            self.words.exit.each_ref().map(|word| word.load(Ordering::SeqCst));
        let time = std::time::Duration::from_nanos;
        let usage = Usage { user: time(user), system: time(system), peak_memory };
        let status = Status::from_wait(code as i32)?;
        Some(Exit { status, usage, executed: executed != 0, at: [wall, clock] })
    }

    /// For the keeper: the leader has exited, and is not reaped.
    pub fn set_exit(self, exit: Exit) {
        let Exit { status, usage, executed, at: [wall, clock] } = exit;
        let Usage { user, system, peak_memory } = usage;
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let code = u64::from(status.to_wait().unsigned_abs());
        let numbers = [code, nanos(user), nanos(system), peak_memory, wall, clock, executed.into()];
        for (word, number) in self.words.exit.iter().zip(numbers) {
            word.store(number, Ordering::SeqCst);
        }
        self.words.exited.store(1, Ordering::SeqCst);
    }

    /// A number that only workers know the meaning of.
    pub fn note(self, index: usize) -> &'static AtomicU64 {
        &self.words.notes[index]
    }

    /// Where the kernel writes the leader's pid.
    pub(crate) fn pid_word(self) -> &'static AtomicI32 {
        &self.words.pid
    }

    /// Makes room for another process. No descriptor is in use and the leader is reaped, or was
    /// never born.
    fn free(self) {
        let Words { used, generation, pid, step, leader, exited, id, descriptors, exit, notes } =
            self.words;
        let (seq, relaxed) = (Ordering::SeqCst, Ordering::Relaxed);
        if used.compare_exchange(USED, FREEING, seq, relaxed).is_err() {
            return;
        }
        let long = id.iter().chain(descriptors).chain(exit).chain(notes);
        long.for_each(|word| word.store(0, Ordering::SeqCst));
        pid.store(0, Ordering::SeqCst);
        [generation, step, leader, exited].iter().for_each(|word| word.store(0, Ordering::SeqCst));
        used.store(FREE, Ordering::SeqCst);
    }

    /// For the keeper: it has reaped the leader. Frees the slot if the worker has no more use for it.
    pub fn reaped(self) {
        if self.add(REAPED) & ABANDONED != 0 {
            self.free();
        }
    }
}

/// Whether a slot has a process.
const FREE: u32 = 0;
const USED: u32 = 1;
const FREEING: u32 = 2;

/// Where this worker looks for a free slot first: none below it is free, except those of earlier
/// workers.
static LOWEST_FREE: AtomicUsize = AtomicUsize::new(0);

/// What a worker takes over of one process: its place, and copies of the descriptors that were in use.
#[derive(Debug)]
pub struct Inherited {
    pub place: Place,
    pub descriptors: Vec<(Purpose, OwnedFd)>,
    /// Some of them are gone: their stand-in died with its worker.
    pub lost: bool,
}

/// The slot of a process of this worker, which is free again when nothing of the process is left:
/// neither an unreaped leader nor a descriptor.
#[derive(Debug)]
pub struct Slot {
    place: Place,
    index: usize,
    registry: Registry,
    is_ours: AtomicBool,
}

impl Slot {
    pub fn place(&self) -> Place {
        self.place
    }

    /// Takes over for good: everything of it that is in use is entered as this worker's. Until then
    /// nothing is changed, so that this worker can leave it to the next one.
    pub fn own(&self) {
        let ours = self.registry.generation();
        for purpose in Purpose::ALL {
            if self.place.descriptor(purpose).is_some_and(|(generation, _)| generation != ours) {
                self.place.set_descriptor(purpose, None);
            }
        }
        self.is_ours.store(true, Ordering::SeqCst);
    }

    fn is_ours(&self) -> bool {
        self.is_ours.load(Ordering::SeqCst)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        let place = self.place;
        if place.generation() == self.registry.generation() {
            place.free();
        } else {
            place.set_id(0);
            if place.add(ABANDONED) & REAPED != 0 || place.pid().is_none() {
                place.free();
            }
        }
        LOWEST_FREE.fetch_min(self.index, Ordering::Relaxed);
    }
}

/// A descriptor that is entered in its process's slot, if it has one, and is removed from there
/// before it is closed. In a slot that is not ours yet, the stand-in of an earlier worker still has the
/// one that is entered.
#[derive(Debug)]
pub struct Entered {
    descriptor: OwnedFd,
    slot: Option<(Arc<Slot>, Purpose)>,
}

impl Entered {
    pub fn new(descriptor: OwnedFd, slot: Option<&Arc<Slot>>, purpose: Purpose) -> Self {
        let entered = Self { descriptor, slot: slot.map(|slot| (Arc::clone(slot), purpose)) };
        if slot.is_some_and(|slot| slot.is_ours()) {
            entered.enter();
        }
        entered
    }

    /// In a slot that is about to be ours.
    pub fn enter(&self) {
        if let Some((slot, purpose)) = &self.slot {
            let entry = (slot.registry.generation(), self.descriptor.as_raw_fd());
            slot.place.set_descriptor(*purpose, Some(entry));
        }
    }
}

impl Drop for Entered {
    /// Runs before the descriptor is closed: its number may be another's at once.
    fn drop(&mut self) {
        if let Some((slot, purpose)) = self.slot.as_ref().filter(|(slot, _)| slot.is_ours()) {
            slot.place.set_descriptor(*purpose, None);
        }
    }
}

impl AsFd for Entered {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl AsRawFd for Entered {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

fn map(file: impl AsFd) -> Result<&'static Memory, Errno> {
    let (size, access) = (size_of::<Memory>(), ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: a new mapping at an address chosen by the kernel aliases nothing.
    let place = unsafe { mmap(ptr::null_mut(), size, access, MapFlags::SHARED, file, 0) }?;
    // SAFETY: the mapping has this size, is never unmapped, and is aligned to a page. It consists of
    // atomic numbers, for which every value is valid and which others may change at any time. The
    // file is never made smaller.
    Ok(unsafe { &*place.cast::<Memory>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Signal;
    use std::time::Duration;

    #[test]
    fn another_mapping_of_the_file_shows_the_same() {
        let (registry, file) = Registry::create().unwrap();
        registry.header().generation.store(3, Ordering::SeqCst);
        let slot = registry.enter(7 << 64 | 9).unwrap();
        let other = Registry::open(&file).unwrap();
        let places: Vec<Place> = other.used().collect();
        let shown = places.iter().map(|place| (place.id(), place.generation(), place.pid()));
        assert_eq!(shown.collect::<Vec<_>>(), [(7 << 64 | 9, 3, None)]);
        drop(slot);
        assert_eq!(other.used().count(), 0);
    }

    #[test]
    fn a_descriptor_is_removed_before_it_is_closed_and_frees_the_slot_last() {
        let (registry, file) = Registry::create().unwrap();
        registry.header().generation.store(2, Ordering::SeqCst);
        let slot = registry.enter(1).unwrap();
        let number = file.as_raw_fd();
        let entered = Entered::new(file, Some(&slot), Purpose::Error);
        let place = slot.place();
        assert_eq!(place.descriptor(Purpose::Error), Some((2, number)));
        assert_eq!(place.descriptor(Purpose::Output), None);
        drop(slot);
        assert_eq!(registry.used().count(), 1);
        drop(entered);
        assert_eq!(place.descriptor(Purpose::Error), None);
        assert_eq!(registry.used().count(), 0);
    }

    /// The slot of an earlier worker's process, as the next worker has it.
    fn taken_over(registry: &Registry) -> Arc<Slot> {
        let generation = &registry.header().generation;
        generation.store(1, Ordering::SeqCst);
        let slot = registry.enter(1).unwrap();
        let place = slot.place();
        place.pid_word().store(7, Ordering::SeqCst);
        // Its worker is gone, and never drops it.
        Box::leak(Box::new(slot));
        generation.store(2, Ordering::SeqCst);
        place.release();
        let slot = registry.take_over(place);
        slot.own();
        slot
    }

    #[test]
    fn a_slot_is_freed_by_the_last_of_worker_and_keeper() {
        let (registry, _file) = Registry::create().unwrap();
        let slot = taken_over(&registry);
        let place = slot.place();
        drop(slot);
        assert_eq!(registry.used().count(), 1, "its leader is a zombie");
        place.reaped();
        assert_eq!(registry.used().count(), 0);
        let slot = taken_over(&registry);
        slot.place().reaped();
        assert_eq!(registry.used().count(), 1, "the worker has it");
        drop(slot);
        assert_eq!(registry.used().count(), 0);
    }

    #[test]
    fn a_slot_begins_anew_whatever_was_added_after_it_was_freed() {
        let (registry, _file) = Registry::create().unwrap();
        let slot = taken_over(&registry);
        let place = slot.place();
        drop(slot);
        place.reaped();
        // A worker that has found it in use a moment before.
        place.release();
        let late = registry.take_over(place);
        late.own();
        drop(late);
        let slot = registry.enter(2).unwrap();
        assert_eq!((slot.place().id(), slot.place().leader()), (2, Leader::Kept));
        slot.place().reaped();
        assert_eq!(registry.used().count(), 1, "nobody has abandoned it");
    }

    #[test]
    fn a_slot_that_is_not_ours_yet_stays_as_it_is() {
        let (registry, file) = Registry::create().unwrap();
        let generation = &registry.header().generation;
        generation.store(1, Ordering::SeqCst);
        let slot = registry.enter(1).unwrap();
        let place = slot.place();
        Box::leak(Box::new(slot));
        let entered = [Some((1, 50)), Some((1, 51))];
        let [output, input] = [Purpose::Output, Purpose::Input];
        place.set_descriptor(output, entered[0]);
        place.set_descriptor(input, entered[1]);
        let shown = || [output, input].map(|purpose| place.descriptor(purpose));
        generation.store(2, Ordering::SeqCst);
        let slot = registry.take_over(place);
        drop(Entered::new(file.try_clone().unwrap(), Some(&slot), output));
        drop(slot);
        assert_eq!((shown(), place.id()), (entered, 1), "this worker gave up");
        let (slot, number) = (registry.take_over(place), file.as_raw_fd());
        let copy = Entered::new(file, Some(&slot), output);
        assert_eq!(shown(), entered);
        copy.enter();
        slot.own();
        assert_eq!(shown(), [Some((2, number)), None], "its input was closed meanwhile");
        drop((slot, copy));
        assert_eq!(registry.used().count(), 0);
    }

    #[test]
    fn an_exit_reads_back_as_it_was_written() {
        let (registry, _file) = Registry::create().unwrap();
        let slot = registry.enter(1).unwrap();
        assert_eq!(slot.place().exit(), None);
        let killed = Status::Signalled { signal: Signal::KILL, core_dumped: true };
        for status in [Status::Exited(0), Status::Exited(255), killed] {
            let (user, system) = (Duration::from_micros(5), Duration::from_secs(7));
            let usage = Usage { user, system, peak_memory: 1 << 40 };
            let exit = Exit { status, usage, executed: true, at: [u64::MAX, 3] };
            slot.place().set_exit(exit);
            assert_eq!(slot.place().exit(), Some(exit));
        }
    }

    #[test]
    fn a_file_that_is_no_registry_is_refused() {
        let file = memory_file::create("other").unwrap();
        assert!(Registry::open(&file).is_err());
        ftruncate(&file, size_of::<Memory>() as u64).unwrap();
        assert!(Registry::open(&file).is_err());
    }

    #[test]
    fn there_are_as_many_slots_as_said_and_no_more() {
        let (registry, _file) = Registry::create().unwrap();
        let mut slots: Vec<_> = (0..SLOTS).map(|_| registry.enter(1).unwrap()).collect();
        assert!(registry.enter(1).is_none());
        slots.remove(SLOTS / 2);
        assert!(registry.enter(1).is_some());
    }
}
