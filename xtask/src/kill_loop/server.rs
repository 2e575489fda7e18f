//! The server under test, and the process of it that is killed.
//!
//! With a keeper, that is its worker, and the keeper starts the next one. Without a keeper it is the
//! server itself, and the loop starts it again: then everything that ran is lost, and seen to be.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use lastbyte_client::Address;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::proc::{self, Process};
use crate::bench::daemon::KilledOnDrop;
use crate::bench::wire;

/// Set for the server and so for everything that it starts, to find what is left.
pub(super) const MARK: &str = "LASTBYTE_KILL_LOOP";
/// The state directory, in the folder of a server.
const STATE: &str = "state";
/// How long it may take to answer again.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    program: PathBuf,
    /// The same with another version, to upgrade to.
    other_version: Option<PathBuf>,
    folder: TempDir,
    disk: Disk,
    tcp: SocketAddr,
    pub(crate) mark: String,
    running: Mutex<Running>,
    has_keeper: bool,
}

/// Where the state directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disk {
    Usual,
    /// A file system in memory of this many MiB, which only the server and its commands see.
    Small(u64),
}

struct Running {
    child: KilledOnDrop,
    /// Held so that it can print.
    _stdout: Lines<BufReader<ChildStdout>>,
    /// Every pid that was the server or its worker.
    pids: Vec<u32>,
}

impl Server {
    pub(crate) fn start(program: &Path, upgrade: bool, disk: Disk) -> Result<Self> {
        let folder =
            tempfile::Builder::new().prefix("lastbyte-kill-loop-").tempdir_in("/var/tmp")?;
        fs::create_dir(folder.path().join(STATE))?;
        let tcp = SocketAddr::from(([127, 0, 0, 1], lastbyte_testkit::free_port()));
        let mark = format!("{}-{}", std::process::id(), tcp.port());
        let other_version =
            upgrade.then(|| with_other_version(program, folder.path())).transpose()?;
        let running =
            Mutex::new(launch(command(program, folder.path(), disk), &folder, (tcp, &mark))?);
        let program = program.to_owned();
        let has_keeper = false;
        let mut own = Self { program, other_version, folder, disk, tcp, mark, running, has_keeper };
        // A keeper may listen before it has a worker.
        own.until_answered()?;
        own.has_keeper = own.worker().is_some();
        Ok(own)
    }

    pub(super) fn has_keeper(&self) -> bool {
        self.has_keeper
    }

    pub(crate) fn unix(&self) -> Address {
        Address::Unix(self.socket())
    }

    pub(super) fn tcp(&self) -> Address {
        Address::Tcp { addr: self.tcp, token: None }
    }

    /// What it has besides its state.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The state directory as the server sees it.
    fn state(&self) -> PathBuf {
        self.folder.path().join(STATE)
    }

    /// The state directory as others see it, while the server runs.
    pub(crate) fn visible_state(&self) -> PathBuf {
        let root = Path::new("/proc").join(self.pid().to_string()).join("root");
        root.join(self.state().strip_prefix("/").unwrap_or(&self.state()))
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.lock().child.0.id()
    }

    /// Every process that was the server or its worker.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.lock().pids.clone()
    }

    /// The worker, which is a child of the keeper. A stand-in has the same environment, but it was
    /// cloned and never executed a program.
    pub(super) fn worker(&self) -> Option<u32> {
        let pid = worker_of(self.pid())?;
        let mut running = self.lock();
        if running.pids.last() != Some(&pid) {
            running.pids.push(pid);
        }
        Some(pid)
    }

    /// The process that serves requests.
    pub(super) fn serving(&self) -> u32 {
        self.worker().unwrap_or_else(|| self.pid())
    }

    /// Kills what serves requests, or upgrades it; returns once it is done.
    pub(super) fn kill(&self, nth: u64) -> Result<()> {
        if let Some(other) = &self.other_version {
            return self.upgrade_to(if nth.is_multiple_of(2) { other } else { &self.program });
        }
        if self.has_keeper {
            return self.kill_worker();
        }
        let mut running = self.lock();
        running.child.0.kill()?;
        running.child.0.wait()?;
        let pids = running.pids.clone();
        let command = command(&self.program, self.folder.path(), self.disk);
        let next = launch(command, &self.folder, (self.tcp, &self.mark))?;
        *running = Running { pids: [pids, next.pids.clone()].concat(), ..next };
        Ok(())
    }

    fn kill_worker(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(pid) = self.worker() {
                kill(pid)?;
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "no worker within {PATIENCE:?}");
            ensure!(proc::is_alive(self.pid()), "the keeper is gone");
            thread::sleep(Duration::from_micros(100));
        }
    }

    fn upgrade_to(&self, binary: &Path) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.args(["upgrade", "--state"]).arg(self.state()).arg("--binary").arg(binary);
        let done = command.env("LASTBYTE_CONFIG", "").output()?;
        ensure!(done.status.success(), "refused: {}", String::from_utf8_lossy(&done.stderr));
        Ok(())
    }

    /// Waits until another worker than this one is there; at once without a keeper.
    pub(super) fn until_another_than(&self, worker: u32) {
        let deadline = Instant::now() + PATIENCE;
        while self.has_keeper
            && Instant::now() < deadline
            && self.worker().is_none_or(|other| other == worker)
        {
            thread::sleep(Duration::from_micros(50));
        }
    }

    /// Waits until a request is answered.
    pub(super) fn until_answered(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let address = wire::Address::Unix(self.socket());
        let ask = || -> Result<Vec<u8>> {
            let mut connection = wire::Connection::open(&address)?;
            connection.limit_reads(PATIENCE)?;
            connection.get("/healthz")
        };
        while let Err(error) = ask() {
            ensure!(Instant::now() < deadline, "no answer within {PATIENCE:?}: {error:#}");
            thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    /// Asks it to stop everything, and waits until it has.
    pub(super) fn shut_down(&self) -> Result<()> {
        let mut connection = wire::Connection::open(&wire::Address::Unix(self.socket()))?;
        connection.post("/v1/shutdown", "")?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.lock().child.0.try_wait()? {
                ensure!(status.success(), "the server ended with {status}");
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "still there after {PATIENCE:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The worker of a keeper, if this is one.
pub(crate) fn worker_of(keeper: u32) -> Option<u32> {
    let is_worker = |process: &Process| {
        let says_so = |entry: &str| entry.starts_with("LASTBYTE_WORKER=");
        !process.was_cloned_only && proc::environment_has(process.pid, says_so)
    };
    Some(proc::children_of(keeper).into_iter().find(is_worker)?.pid)
}

pub(crate) fn kill(pid: u32) -> Result<()> {
    let pid = Pid::from_raw(pid.cast_signed()).context("no pid")?;
    Ok(kill_process(pid, Signal::KILL)?)
}

/// The program, with a small disk of its own if that is wanted.
fn command(program: &Path, folder: &Path, disk: Disk) -> Command {
    let Disk::Small(mebibytes) = disk else { return Command::new(program) };
    let mut unshare = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    let script = "mount -t tmpfs -o \"size=$0m,mode=700\" tmpfs \"$1\" && shift && exec \"$@\"";
    unshare.args(["--mount", "--propagation=private", "sh", "-c", script, &mebibytes.to_string()]);
    unshare.arg(folder.join(STATE)).arg(program);
    unshare
}

fn launch(
    mut command: Command,
    folder: &TempDir,
    (tcp, mark): (SocketAddr, &str),
) -> Result<Running> {
    let folder = folder.path();
    let log = File::options().append(true).create(true).open(folder.join("log"))?;
    let child = command
        .args(["serve", "--no-auth", "--listen", &tcp.to_string(), "--state"])
        .arg(folder.join(STATE))
        .args(["--socket".as_ref(), folder.join("socket").as_os_str()])
        .env("LASTBYTE_LOG", "warn")
        .env(MARK, mark)
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()?;
    let mut child = KilledOnDrop(child);
    let mut lines = BufReader::new(child.0.stdout.take().context("no stdout")?).lines();
    for _ in 0..2 {
        match lines.next().transpose()? {
            Some(line) if line.starts_with("listening on ") => {}
            other => {
                let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
                bail!("the server did not start: {other:?} {log}")
            }
        }
    }
    let pids = vec![child.0.id()];
    Ok(Running { child, _stdout: lines, pids })
}

/// A copy that says to be another version of the same length.
fn with_other_version(program: &Path, folder: &Path) -> Result<PathBuf> {
    let (own, other) = (env!("CARGO_PKG_VERSION").as_bytes(), b"9");
    let mut bytes = fs::read(program)?;
    let places: Vec<usize> = (0..bytes.len().saturating_sub(own.len()))
        .filter(|at| bytes[*at..].starts_with(own))
        .collect();
    for place in places {
        bytes[place + own.len() - 1] = other[0];
    }
    let copy = folder.join("lastbyte-other-version");
    fs::write(&copy, bytes)?;
    fs::set_permissions(&copy, fs::metadata(program)?.permissions())?;
    Ok(copy)
}
