//! Whenever a queue is gone, the next one goes on with its input.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::time::Duration;

use lastbyte_sys::memory_file;
use lastbyte_sys::pty::WindowSize;
use lastbyte_sys::registry::Registry;
use lastbyte_sys::spawn::{Output, OutputEnds, Stdin, open_ends};
use proptest::prelude::*;
use tokio::task::yield_now;
use tokio::time::timeout;

use super::*;

/// One thing that happens to a queue.
#[derive(Debug, Clone)]
enum Event {
    Write(usize),
    /// The same, again, as a caller does that did not get the answer.
    Repeat,
    Close,
    Step,
    Read(usize),
    /// The program is killed, and another one goes on.
    Kill,
}

/// A queue, the pipe behind it, and descriptors that outlive the queue as a holder's do.
struct Fixture {
    queue: StdinQueue,
    gate: StdinGate,
    end: Option<OwnedFd>,
    file: OwnedFd,
    command: File,
    accepted: Vec<u8>,
    last_write: usize,
    closing: bool,
    read: Vec<u8>,
}

impl Fixture {
    fn new() -> Self {
        let (read_end, end) = pipe::pipe().expect("a pipe");
        pipe::set_nonblocking(&read_end).expect("a flag");
        pipe::set_nonblocking(&end).expect("a flag");
        let file = memory_file::create("test").expect("a file");
        let (queue, gate) = resumed(Some(&end), &file, EndOfFile::Close);
        let (accepted, read) = (Vec::new(), Vec::new());
        let (command, end) = (read_end.into(), Some(end));
        Self { queue, gate, end, file, command, accepted, last_write: 0, closing: false, read }
    }

    async fn happens(&mut self, event: Event) {
        match event {
            Event::Write(count) => self.write(count),
            Event::Repeat => {
                let (start, end) = (self.accepted.len() - self.last_write, self.accepted.len());
                let again = self.accepted[start..].to_vec();
                let answer = self.queue.accept(&again, Some(start as u64), Then::KeepOpen);
                match answer {
                    Ok(written) => assert_eq!(written.accepted, end as u64),
                    Err(error) => assert!(again.is_empty() && self.closing, "{error}"),
                }
            }
            Event::Close => {
                let answer = self.queue.accept(&[], None, Then::Close);
                assert_eq!(answer, Ok(Written { accepted: self.accepted.len() as u64 }));
                self.closing = true;
            }
            Event::Step => self.step().await,
            Event::Read(count) => _ = self.read(count),
            Event::Kill => {
                (self.queue, self.gate) = resumed(self.end.as_ref(), &self.file, EndOfFile::Close);
            }
        }
        self.check();
    }

    fn write(&mut self, count: usize) {
        let from = self.accepted.len();
        let bytes: Vec<u8> = (from..from + count).map(|at| (at % 251 + 1) as u8).collect();
        match self.queue.accept(&bytes, None, Then::KeepOpen) {
            Ok(_) => {
                self.accepted.extend(bytes);
                self.last_write = count;
            }
            Err(error) => assert_eq!((error, self.closing), (WriteError::Closed, true)),
        }
    }

    /// One step, if there is anything to do.
    async fn step(&mut self) {
        tokio::select! {
            biased;
            () = self.queue.step() => {}
            () = yield_now() => {}
        }
    }

    fn read(&mut self, count: usize) -> bool {
        let mut chunk = vec![0; count.max(1)];
        match self.command.read(&mut chunk) {
            Ok(count) => {
                self.read.extend(&chunk[..count]);
                count == 0
            }
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                false
            }
        }
    }

    fn check(&mut self) {
        let state = *self.gate.state.borrow();
        assert_eq!(state.accepted, self.accepted.len() as u64);
        assert!(self.accepted.starts_with(&self.read), "other bytes than were accepted");
        let in_pipe = pipe::ready(&self.command).expect("a pipe");
        assert_eq!(state.written, self.read.len() as u64 + in_pipe);
        assert_eq!(state.then == Then::Close, self.closing);
        let is_closed = self.closing && state.written == state.accepted;
        assert_eq!(state.open == StdinOpen::Closed, is_closed, "{state:?}");
        if is_closed {
            // A holder closes what the queue has closed.
            self.end = None;
        }
    }
}

fn resumed(
    end: Option<&OwnedFd>,
    file: &OwnedFd,
    end_of_file: EndOfFile,
) -> (StdinQueue, StdinGate) {
    let copy = |fd: &OwnedFd| fd.try_clone().expect("a descriptor");
    StdinQueue::resume(end.map(copy), copy(file), end_of_file, None).expect("a queue")
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => prop_oneof![1..50usize, 4000..4200usize, 1..200_000usize].prop_map(Event::Write),
        1 => Just(Event::Repeat),
        4 => Just(Event::Step),
        3 => prop_oneof![1..100usize, 1..100_000usize].prop_map(Event::Read),
        2 => Just(Event::Kill),
    ]
}

/// Lets the command read everything, up to the end of file.
async fn read_to_end(fixture: &mut Fixture) {
    loop {
        fixture.step().await;
        fixture.check();
        if fixture.read(1 << 20) {
            return;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_command_reads_what_was_accepted_wherever_the_queue_dies(
        events in prop::collection::vec(any_event(), 1..60),
        close_at in 0usize..80,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async move {
            let mut fixture = Fixture::new();
            for (number, event) in events.into_iter().enumerate() {
                if number == close_at {
                    fixture.happens(Event::Close).await;
                }
                fixture.happens(event).await;
            }
            fixture.happens(Event::Close).await;
            fixture.happens(Event::Kill).await;
            read_to_end(&mut fixture).await;
            assert!(fixture.read == fixture.accepted);
        });
    }
}

/// Into the pipe go references to the file's pages, and the last page is shared with what follows.
#[tokio::test]
async fn bytes_in_the_pipe_stay_as_they_are_while_memory_is_given_back() {
    let mut fixture = Fixture::new();
    for _ in 0..300 {
        fixture.happens(Event::Write(10_007)).await;
        fixture.happens(Event::Step).await;
        fixture.happens(Event::Read(10_001)).await;
        assert!(memory(&fixture.file) < 512 << 10, "{} bytes in memory", memory(&fixture.file));
    }
    fixture.happens(Event::Close).await;
    read_to_end(&mut fixture).await;
    assert!(fixture.read == fixture.accepted);
}

#[tokio::test]
async fn many_writes_of_one_byte_arrive_and_take_little_memory() {
    let mut fixture = Fixture::new();
    for number in 0..1 << 17 {
        fixture.write(1);
        fixture.step().await;
        if number % 10 == 0 {
            fixture.read(1 << 16);
        }
        if number % 1000 == 0 {
            assert!(memory(&fixture.file) <= 128 << 10, "{} bytes", memory(&fixture.file));
        }
    }
    fixture.happens(Event::Close).await;
    read_to_end(&mut fixture).await;
    assert!(fixture.read == fixture.accepted);
}

#[tokio::test]
async fn a_full_queue_stays_full_for_the_next_one() {
    let mut fixture = Fixture::new();
    let full = |room| Err(WriteError::QueueFull { bytes: 1, room });
    fixture.queue.accept(&vec![b'x'; QUEUE_BYTES], None, Then::KeepOpen).expect("room");
    assert_eq!(fixture.queue.accept(b"y", None, Then::KeepOpen), full(0));
    (fixture.queue, fixture.gate) = resumed(fixture.end.as_ref(), &fixture.file, EndOfFile::Close);
    assert_eq!(fixture.queue.accept(b"y", None, Then::KeepOpen), full(0));
    let again = fixture.queue.accept(&vec![b'x'; QUEUE_BYTES], Some(0), Then::KeepOpen);
    assert_eq!(again, Ok(Written { accepted: QUEUE_BYTES as u64 }));
    fixture.step().await;
    fixture.queue.accept(b"y", None, Then::KeepOpen).expect("what the pipe has taken is room");
}

#[tokio::test]
async fn a_command_that_closed_its_input_has_closed_it_for_the_next_queue() {
    let mut fixture = Fixture::new();
    fixture.queue.accept(&vec![b'x'; 1 << 20], None, Then::KeepOpen).expect("room");
    fixture.step().await;
    fixture.command = File::open("/dev/null").expect("a file");
    fixture.step().await;
    assert_eq!(fixture.gate.state.borrow().open, StdinOpen::Broken);
    assert!(memory(&fixture.file) <= 64 << 10, "nobody reads it");
    (fixture.queue, fixture.gate) = resumed(None, &fixture.file, EndOfFile::Close);
    assert_eq!(fixture.gate.state.borrow().open, StdinOpen::Broken);
    let more = fixture.queue.accept(b"more", None, Then::KeepOpen);
    assert_eq!(more, Err(WriteError::Broken));
    let again = fixture.queue.accept(&[b'x'; 10], Some(5), Then::KeepOpen);
    assert_eq!(again, Ok(Written { accepted: 1 << 20 }));
}

/// What is typed, and how a program reads it: in lines, an empty one being the end of file.
async fn typed(input: &str, kill: impl Fn(usize) -> bool) -> Vec<String> {
    let size = WindowSize { rows: 5, cols: 5 };
    let (ends, child) = open_ends(Stdin::Null, Output::Pty(size)).expect("a pty");
    let OutputEnds::Pty { ours, terminal } = ends.output else { panic!("not a pty") };
    pipe::set_nonblocking(&terminal).expect("a flag");
    let file = memory_file::create("test").expect("a file");
    let resume = || resumed(Some(&ours), &file, EndOfFile::Type(4));
    let (mut queue, mut gate) = resume();
    let mut number = 0;
    let mut next = |queue: &mut StdinQueue, gate: &mut StdinGate| {
        if kill(number) {
            (*queue, *gate) = resume();
        }
        number += 1;
    };
    queue.accept(input.as_bytes(), Some(0), Then::KeepOpen).expect("room");
    next(&mut queue, &mut gate);
    queue.accept(input.as_bytes(), Some(0), Then::Close).expect("a close");
    while gate.state.borrow().open == StdinOpen::Open {
        next(&mut queue, &mut gate);
        _ = timeout(Duration::from_millis(1), queue.step()).await;
    }
    drop(child);
    assert_eq!(gate.state.borrow().written, input.len() as u64);
    let mut lines = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(count) = File::from(terminal.try_clone().expect("one")).read(&mut chunk) {
        lines.push(String::from_utf8_lossy(&chunk[..count]).into_owned());
    }
    lines
}

#[tokio::test]
async fn the_end_of_file_is_typed_once_wherever_the_queue_dies() {
    let cases: [(&str, &[&str]); 4] = [
        ("", &[""]),
        ("line\n", &["line\n", ""]),
        ("line\nrest", &["line\n", "rest", ""]),
        ("rest", &["rest", ""]),
    ];
    for (input, want) in cases {
        assert_eq!(typed(input, |_| false).await, want);
        assert_eq!(typed(input, |_| true).await, want);
        for at in 0..4 {
            assert_eq!(typed(input, |number| number == at).await, want, "killed at {at}");
        }
    }
}

/// Where a kill between the two would lose bytes: the position is moved before the bytes are typed.
#[tokio::test]
async fn what_may_have_been_typed_is_not_typed_again() {
    let size = WindowSize { rows: 5, cols: 5 };
    let (ends, _child) = open_ends(Stdin::Null, Output::Pty(size)).expect("a pty");
    let OutputEnds::Pty { ours, terminal } = ends.output else { panic!("not a pty") };
    let file = memory_file::create("test").expect("a file");
    let (mut queue, _gate) = resumed(Some(&ours), &file, EndOfFile::Type(4));
    queue.accept(b"lost\n", None, Then::KeepOpen).expect("room");
    memory_file::set_position(&file, 5).expect("a position");
    let (mut queue, gate) = resumed(Some(&ours), &file, EndOfFile::Type(4));
    assert_eq!(gate.state.borrow().written, 5);
    queue.accept(b"kept\n", None, Then::KeepOpen).expect("room");
    queue.step().await;
    let mut chunk = [0; 100];
    let count = File::from(terminal).read(&mut chunk).expect("a line");
    assert_eq!(&chunk[..count], b"kept\n");
}

#[tokio::test]
async fn what_may_not_have_been_typed_is_known_to_every_later_queue() {
    let size = WindowSize { rows: 5, cols: 5 };
    let (ends, _child) = open_ends(Stdin::Null, Output::Pty(size)).expect("a pty");
    let OutputEnds::Pty { ours, terminal: _terminal } = ends.output else { panic!("not a pty") };
    let file = memory_file::create("test").expect("a file");
    let (registry, _memory) = Registry::create().expect("a registry");
    let slot = registry.enter(1).expect("room");
    let resume = || {
        let copy = |fd: &OwnedFd| fd.try_clone().expect("a descriptor");
        let end = Some(copy(&ours));
        StdinQueue::resume(end, copy(&file), EndOfFile::Type(4), Some(&slot)).expect("a queue")
    };
    let uncertain = |gate: &StdinGate| gate.state.borrow().uncertain;
    let (mut queue, _gate) = resume();
    queue.accept(b"typed\n", None, Then::KeepOpen).expect("room");
    queue.step().await;
    let (mut queue, gate) = resume();
    assert_eq!(uncertain(&gate), None);
    queue.accept(b"lost\n", None, Then::KeepOpen).expect("room");
    queue.accepted.begin_typing(6, 5).expect("a position");
    let (mut queue, gate) = resume();
    assert_eq!((uncertain(&gate), gate.state.borrow().written), (Some((6, 11)), 11));
    queue.accept(b"typed\n", None, Then::KeepOpen).expect("room");
    queue.step().await;
    let (mut queue, gate) = resume();
    assert_eq!(uncertain(&gate), Some((6, 11)));
    queue.accept(b"", None, Then::Close).expect("a close");
    queue.accepted.begin_typing(17, 1).expect("a position");
    assert_eq!(uncertain(&resume().1), Some((6, 18)), "the end of file");
}

#[tokio::test]
async fn of_two_bytes_that_end_a_line_and_the_file_each_is_typed_once() {
    for typed in 0..=2 {
        let size = WindowSize { rows: 5, cols: 5 };
        let (ends, _child) = open_ends(Stdin::Null, Output::Pty(size)).expect("a pty");
        let OutputEnds::Pty { ours, terminal } = ends.output else { panic!("not a pty") };
        pipe::set_nonblocking(&terminal).expect("a flag");
        let file = memory_file::create("test").expect("a file");
        memory_file::append(&file, 0, b"rest").expect("memory");
        memory_file::seal(&file).expect("a seal");
        memory_file::set_position(&file, 4 + typed).expect("a position");
        let (mut queue, gate) = resumed(Some(&ours), &file, EndOfFile::Type(4));
        let answer = queue.accept(b"t", Some(3), Then::Close);
        assert_eq!(answer, Ok(Written { accepted: 4 }), "a repetition");
        while gate.state.borrow().open == StdinOpen::Open {
            queue.step().await;
        }
        // The bytes typed before are not on this terminal.
        let (mut terminal, mut ends) = (File::from(terminal), 0);
        while terminal.read(&mut [0; 10]).is_ok_and(|count| count == 0) {
            ends += 1;
        }
        assert_eq!((gate.state.borrow().open, ends), (StdinOpen::Closed, 2 - typed));
    }
}

#[tokio::test]
async fn both_descriptors_are_entered_as_long_as_they_are_in_use() {
    let (registry, _file) = Registry::create().expect("a registry");
    let slot = registry.enter(1).expect("room");
    let place = slot.place();
    let (_command, end) = pipe::pipe().expect("a pipe");
    let (mut queue, _gate) = StdinQueue::new(end, EndOfFile::Close, Some(&slot)).expect("a queue");
    let entered = || [Purpose::Input, Purpose::Accepted].map(|one| place.descriptor(one).is_some());
    assert_eq!(entered(), [true, true]);
    queue.give(b"all of it").expect("room");
    queue.step().await;
    assert_eq!(entered(), [false, true], "it is closed, and what was accepted is still known");
    drop(queue);
    assert_eq!(entered(), [false, false]);
}

fn memory(file: impl AsFd) -> u64 {
    let file = file.as_fd().try_clone_to_owned().expect("a descriptor");
    std::os::unix::fs::MetadataExt::blocks(&File::from(file).metadata().expect("facts")) * 512
}

/// All of the file, as the next program would find it.
fn contents(file: &OwnedFd) -> Vec<u8> {
    let mut bytes =
        vec![0; usize::try_from(memory_file::len(file).expect("a file")).expect("short")];
    memory_file::read_at(file, &mut bytes, 0).expect("a file");
    bytes
}

#[tokio::test]
async fn a_secret_is_erased_once_it_is_written_and_what_is_around_it_is_not() {
    let mut fixture = Fixture::new();
    fixture.queue.accept(b"before ", None, Then::KeepOpen).expect("room");
    fixture.queue.accept_as(true, b"pass\nword\n", None, Then::KeepOpen).expect("room");
    fixture.queue.accept(b"after", None, Then::KeepOpen).expect("room");
    while fixture.queue.has_more() {
        fixture.queue.step().await;
    }
    assert_eq!(contents(&fixture.file), b"before \0\0\0\0\n\0\0\0\0\nafter");
    let mut read = [0; 22];
    fixture.command.read_exact(&mut read).expect("all of it");
    assert_eq!(&read, b"before pass\nword\nafter");
}

#[tokio::test]
async fn what_a_killed_program_has_not_written_of_a_secret_is_erased_by_the_next() {
    let (registry, _shared) = Registry::create().expect("a registry");
    let slot = registry.enter(1);
    let (read_end, end) = pipe::pipe().expect("a pipe");
    pipe::set_nonblocking(&end).expect("a flag");
    let file = memory_file::create("test").expect("a file");
    let again = || {
        let (end, file) = (end.try_clone().expect("a copy"), file.try_clone().expect("a copy"));
        StdinQueue::resume(Some(end), file, EndOfFile::Close, slot.as_ref()).expect("a queue").0
    };
    let mut queue = again();
    queue.set_secret(true).expect("a pipe shows nothing");
    queue.accept_as(true, b"password", None, Then::KeepOpen).expect("room");
    drop(queue);
    let mut queue = again();
    assert_eq!(contents(&file), b"password", "it is still to be written");
    while queue.has_more() {
        queue.step().await;
    }
    assert_eq!(contents(&file), [0; 8]);
    let mut read = [0; 8];
    File::from(read_end).read_exact(&mut read).expect("all of it");
    assert_eq!(&read, b"password");
}

/// A kill between typing and erasing.
#[tokio::test]
async fn a_secret_that_a_killed_program_has_typed_is_erased_by_the_next() {
    let (registry, _shared) = Registry::create().expect("a registry");
    let slot = registry.enter(1);
    let size = WindowSize { rows: 5, cols: 5 };
    let (ends, _child) = open_ends(Stdin::Null, Output::Pty(size)).expect("a pty");
    let OutputEnds::Pty { ours, terminal: _terminal } = ends.output else { panic!("not a pty") };
    let file = memory_file::create("test").expect("a file");
    let again = || {
        let (end, file) = (ours.try_clone().expect("a copy"), file.try_clone().expect("a copy"));
        StdinQueue::resume(Some(end), file, EndOfFile::Type(4), slot.as_ref()).expect("a queue").0
    };
    let mut queue = again();
    queue.set_secret(true).expect("a terminal");
    queue.accept_as(true, b"pass\nword", None, Then::KeepOpen).expect("room");
    queue.accepted.begin_typing(0, 5).expect("a position");
    drop(queue);
    drop(again());
    assert_eq!(contents(&file), b"\0\0\0\0\nword", "the rest is still to be typed");
}
