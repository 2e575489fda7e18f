//! The commands: what each writes, how it ends, and what its client does meanwhile.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use lastbyte_client::wire::{
    Cause, Ending, Sandbox, StartRequest, Status, Stdin, StopPolicy, StopVerb, StreamsAsked,
    TimeoutKind, Tty, Wait,
};
use lastbyte_testkit::pattern_bytes;

use super::secret::secret;
use super::server::Server;
use crate::random::Random;

/// The label that names a job, to find a process whose start was not answered.
pub(super) const LABEL: &str = "job";

pub(crate) struct Job {
    /// Of the client and the seed: finds it again.
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) request: StartRequest,
    pub(super) reader: Reader,
    pub(super) act: Act,
    pub(super) output: Output,
    /// Whether it writes down that it ran.
    pub(super) says_that_it_ran: bool,
    /// One of these.
    pub(super) statuses: Vec<Wanted>,
    pub(super) cause: WantedCause,
    /// How many secrets were masked at its ending, if that is certain.
    pub(super) masked: Option<u64>,
}

/// What commands are made of.
#[derive(Clone)]
pub(crate) struct Commands {
    pub(crate) testchild: PathBuf,
    /// A file with a line for each command that ran: the name of its job.
    pub(super) ran: PathBuf,
}

impl Commands {
    pub(crate) fn new(program: &Path, server: &Server) -> Self {
        let testchild = program.with_file_name("testchild");
        Self { testchild, ran: server.folder().join("ran") }
    }
}

/// How the output is read while it comes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reader {
    Follow,
    /// Pauses after each piece.
    FollowSlowly,
    Poll,
    Attach,
}

const READERS: [Reader; 4] = [Reader::Follow, Reader::FollowSlowly, Reader::Poll, Reader::Attach];

/// What the client does beside reading.
pub(super) enum Act {
    Nothing,
    /// Writes this part of the pattern in pieces, then closes the input.
    Write(Range<u64>),
    /// Stops it once it is ready.
    Stop,
    /// Waits for a condition that is met, then closes the input.
    Wait(Wait),
}

pub(super) struct Output {
    pub(super) stdout: Vec<u8>,
    /// Of split streams.
    pub(super) stderr: Option<Vec<u8>>,
    /// It may be stopped before it has written all.
    pub(super) may_be_cut: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Wanted {
    Code(i32),
    Signal(i32),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum WantedCause {
    Own,
    TimedOut(TimeoutKind),
    Stopped,
}

const READY: &str = "ready";
const KILL: Wanted = Wanted::Signal(9);
const TERM: Wanted = Wanted::Signal(15);
/// Signals that end a process, of which none stops it or is used by the runtime.
const SIGNALS: [i32; 12] = [1, 2, 3, 6, 9, 10, 12, 14, 15, 24, 25, 30];

type Make = fn(&mut Job, &mut Random, u64);

/// The quick ones first, secrets last.
const KINDS: [(&str, Make); 13] = [
    ("exit", exit),
    ("signal", signal),
    ("flood", flood),
    ("split", split),
    ("pty", pty),
    ("stdin", stdin),
    ("holder", holder),
    ("sandbox", sandbox),
    ("timeout", timeout),
    ("stop", stop),
    ("pattern", pattern),
    ("port", port),
    ("secret", secret),
];

impl Job {
    /// The nth job of a client.
    pub(crate) fn new(commands: &Commands, client: u64, nth: u64, random: &mut Random) -> Self {
        let name = format!("{client}.{nth}");
        let kinds = match client % 8 {
            // Nothing but quick ones: at each kill, starts and endings are under way.
            3 | 7 => &KINDS[..2],
            // Nothing but secrets: at each kill, some output is being masked.
            6 => &KINDS[KINDS.len() - 1..],
            _ => &KINDS[..],
        };
        let (kind, make) = random.one_of(kinds);
        let request = StartRequest {
            labels: BTreeMap::from([(LABEL.into(), name.clone())]),
            key: random.percent(60).then(|| format!("key {name}")),
            ..StartRequest::default()
        };
        let mut job = Self {
            name,
            kind,
            request,
            reader: random.one_of(&READERS),
            act: Act::Nothing,
            output: Output { stdout: Vec::new(), stderr: None, may_be_cut: false },
            says_that_it_ran: false,
            statuses: vec![Wanted::Code(0)],
            cause: WantedCause::Own,
            masked: Some(0),
        };
        // No two processes write the same bytes.
        make(&mut job, random, (client << 48) + (nth << 32));
        job.write_down_that_it_ran(commands);
        job
    }

    /// The first thing that each command does, unless it may write nothing.
    fn write_down_that_it_ran(&mut self, Commands { testchild, ran }: &Commands) {
        let (name, ran) = (&self.name, ran.display().to_string());
        let is_confined = self.request.sandbox.is_some();
        if let Some(shell) = &mut self.request.shell {
            *shell = format!("echo {name} >>{ran}; {shell}");
        }
        if let Some(words) = &mut self.request.command {
            let first = ["append".to_owned(), ran, format!("{name}\\n"), "then".to_owned()];
            let first = first.into_iter().filter(|_| !is_confined);
            words.splice(..1, [testchild.display().to_string()].into_iter().chain(first));
        }
        self.says_that_it_ran = !is_confined;
    }

    fn run(&mut self, actions: &str) {
        let words = actions.split(' ').map(str::to_owned);
        self.request.command = Some([String::new()].into_iter().chain(words).collect());
    }

    pub(super) fn exits(&mut self, code: u64) {
        self.statuses = vec![Wanted::Code(code as i32)];
    }

    /// What is wrong with the ending.
    pub(super) fn check_ending(&self, ending: &Ending) -> Option<String> {
        let status = match ending.status {
            Status::Exited { code } => Some(Wanted::Code(code)),
            Status::Signalled { signal, .. } => Some(Wanted::Signal(signal)),
            Status::Lost { .. } => None,
        };
        let status_is_right = status.is_some_and(|status| self.statuses.contains(&status));
        let cause_is_right = match (&ending.cause, self.cause) {
            (Some(Cause::Own), WantedCause::Own) => true,
            (Some(Cause::TimedOut { which, escalated }), WantedCause::TimedOut(wanted)) => {
                // It may die of the first signal just when it is to be killed.
                *which == wanted && (*escalated || status != Some(KILL))
            }
            (Some(Cause::Stopped { verb, .. }), WantedCause::Stopped) => *verb == StopVerb::Stop,
            _ => false,
        };
        if let Some(wanted) = self.masked.filter(|wanted| *wanted != ending.masked) {
            return Some(format!("{} secrets are masked instead of {wanted}", ending.masked));
        }
        (!status_is_right || !cause_is_right).then(|| {
            let (wanted, cause) = (&self.statuses, self.cause);
            format!("{:?}, {:?} instead of {wanted:?}, {cause:?}", ending.status, ending.cause)
        })
    }
}

fn flood(job: &mut Job, random: &mut Random, base: u64) {
    let (bytes, code) = (random.between(1, 6 << 20), random.between(0, 256));
    job.run(&format!("pattern-from {base} then write-bytes {bytes} then exit {code}"));
    job.output.stdout = pattern_bytes(base..base + bytes);
    job.exits(code);
}

fn split(job: &mut Job, random: &mut Random, base: u64) {
    job.request.streams = Some(StreamsAsked::Split);
    let (mut actions, mut written) = (format!("pattern-from {base}"), [0; 2]);
    for _ in 0..random.between(2, 12) {
        let (stream, bytes) = (random.between(0, 2) as usize, random.between(1, 300_000));
        let alternately = random.between(1, 200);
        let name = ["out", "err"][stream];
        actions += &format!(" then write-bytes {bytes} {name} then alternate {alternately}");
        written[stream] += bytes;
        written = written.map(|count| count + alternately);
    }
    job.run(&actions);
    let [stdout, stderr] = written.map(|count| pattern_bytes(base..base + count));
    (job.output.stdout, job.output.stderr) = (stdout, Some(stderr));
}

fn pty(job: &mut Job, random: &mut Random, base: u64) {
    job.request.tty = Some(Tty { rows: 24, cols: 80 });
    let (bytes, code) = (random.between(1, 400_000), random.between(0, 256));
    job.run(&format!("pattern-from {base} then write-bytes {bytes} then exit {code}"));
    let written = pattern_bytes(base..base + bytes);
    // The terminal writes a line feed as two bytes.
    let shown = written.iter().flat_map(|byte| match byte {
        b'\n' => &b"\r\n"[..],
        byte => std::slice::from_ref(byte),
    });
    job.output.stdout = shown.copied().collect();
    job.exits(code);
}

fn stdin(job: &mut Job, random: &mut Random, base: u64) {
    job.request.stdin = Some(Stdin::Open);
    let (bytes, code) = (random.between(1, 1 << 20), random.between(0, 256));
    job.run(&format!("cat then exit {code}"));
    job.act = Act::Write(base..base + bytes);
    job.output.stdout = pattern_bytes(base..base + bytes);
    job.exits(code);
}

/// The leader exits, and a child that has its output writes on.
fn holder(job: &mut Job, random: &mut Random, base: u64) {
    let (bytes, late) = (random.between(1, 100_000), random.between(1, 100_000));
    let (pause, code, next) = (random.between(50, 1500), random.between(0, 256), base + bytes);
    job.run(&format!(
        "pattern-from {base} then write-bytes {bytes} then background pattern-from {next} then \
         sleep-ms {pause} then write-bytes {late} then exit 9 end then exit {code}"
    ));
    job.output.stdout = pattern_bytes(base..next + late);
    job.exits(code);
}

fn exit(job: &mut Job, random: &mut Random, _base: u64) {
    let code = random.between(0, 256);
    job.request.shell = Some(format!("echo {code} of {}; exit {code}", job.name));
    job.output.stdout = format!("{code} of {}\n", job.name).into_bytes();
    if random.percent(30) {
        job.request.wait = Some(Wait { exit: Some(true), ..Wait::default() });
    }
    job.exits(code);
}

fn signal(job: &mut Job, random: &mut Random, base: u64) {
    let (number, bytes) = (random.one_of(&SIGNALS), random.between(1, 200_000));
    job.run(&format!("pattern-from {base} then write-bytes {bytes} then kill-self {number}"));
    job.output.stdout = pattern_bytes(base..base + bytes);
    job.statuses = vec![Wanted::Signal(number)];
}

fn sandbox(job: &mut Job, random: &mut Random, base: u64) {
    flood(job, random, base);
    job.request.sandbox = Some(Sandbox::ReadOnly { network: false });
}

fn timeout(job: &mut Job, random: &mut Random, _base: u64) {
    let after = random.between(30, 1500);
    let which = random.one_of(&[TimeoutKind::Wall, TimeoutKind::Idle]);
    match which {
        TimeoutKind::Wall => job.request.timeout_ms = Some(after),
        TimeoutKind::Idle => job.request.idle_timeout_ms = Some(after),
    }
    job.request.stop = Some(StopPolicy { signal: None, grace_ms: Some(random.between(50, 1000)) });
    lingering(job, random);
    // It may be stopped before it ignores the signal.
    job.statuses = vec![TERM, KILL];
    job.output.may_be_cut = true;
    job.cause = WantedCause::TimedOut(which);
}

fn stop(job: &mut Job, random: &mut Random, _base: u64) {
    job.request.stop = Some(StopPolicy { signal: None, grace_ms: Some(random.between(50, 1500)) });
    lingering(job, random);
    job.act = Act::Stop;
    job.cause = WantedCause::Stopped;
}

/// Ends only if it is stopped.
fn lingering(job: &mut Job, random: &mut Random) {
    let ignores = random.percent(50);
    let begin = if ignores { "ignore 15 then " } else { "" };
    job.run(&format!("{begin}print {READY} then sleep-ms 45000"));
    job.output.stdout = READY.into();
    job.statuses = vec![if ignores { KILL } else { TERM }];
}

fn pattern(job: &mut Job, random: &mut Random, _base: u64) {
    let text = format!("listening as {}", job.name);
    until_told(job, random, &format!("print {}\\n", text.replace(' ', "_")));
    job.output.stdout = format!("{}\n", text.replace(' ', "_")).into_bytes();
    let wanted = format!("^listening_as_{}$", job.name.replace('.', "\\."));
    job.act = Act::Wait(Wait { pattern: Some(wanted), ..Wait::default() });
}

fn port(job: &mut Job, random: &mut Random, base: u64) {
    // Not one that the kernel gives to a connection meanwhile, and no other job's.
    let port = 10_000 + ((base >> 48) * 2_000 + (base >> 32) % 2_000) % 20_000;
    let port = u16::try_from(port).unwrap_or(10_000);
    until_told(job, random, &format!("listen {port}"));
    job.act = Act::Wait(Wait { port: Some(port), ..Wait::default() });
}

/// Does something after a pause, then runs until its input is closed.
fn until_told(job: &mut Job, random: &mut Random, action: &str) {
    let (pause, code) = (random.between(1, 1500), random.between(0, 256));
    job.request.stdin = Some(Stdin::Open);
    job.run(&format!("sleep-ms {pause} then {action} then await-eof then exit {code}"));
    job.exits(code);
}
