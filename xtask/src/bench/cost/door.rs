//! The APIs through which a command can be run, each with a client, and the cost of a command
//! there.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use super::Cost;
use super::preload::Preload;
use super::trace::Trace;
use crate::bench::coder::Coder;
use crate::bench::codex::Server;
use crate::bench::daemon::Daemon;
use crate::bench::wire::Connection;

const WARM_UP: u64 = 30;
const BATCHES: usize = 7;
const BATCH: u64 = 20;
/// How often the program itself is run.
const RUNS: usize = 11;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Door {
    /// `POST /v1/processes` that waits for the exit, over the unix socket.
    Http,
    /// Coder's start, then its output with `wait=true`, over the unix socket.
    Coder,
    /// Codex's `command/exec` over standard input and output.
    Codex,
    /// `lastbyte run true`: a program that runs one command and ends.
    Run,
}

/// A server that runs, and a client of it.
enum Connected {
    Http { daemon: Daemon, client: Connection },
    Coder { daemon: Daemon, client: Coder },
    Codex(Server),
}

impl Door {
    pub(super) const ALL: [Self; 4] = [Self::Http, Self::Coder, Self::Codex, Self::Run];

    pub(super) const SERVERS: [Self; 3] = [Self::Http, Self::Coder, Self::Codex];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Coder => "coder",
            Self::Codex => "codex",
            Self::Run => "run",
        }
    }

    /// System calls are counted in a separate run, because strace slows a program down.
    pub(super) fn measure(self, meters: &Meters<'_>) -> Result<Cost> {
        if self == Self::Run {
            return meters.measure_run();
        }
        let mut server = Connected::start(self, meters.preloaded()?)?;
        let pid = server.pid();
        let [allocations, context_switches] =
            in_batches(&mut server, || meters.preload.of_running(pid))?;
        drop(server);
        let mut trace = Trace::new(meters.folder);
        let traced = clean(trace.server(meters.program), meters.folder);
        let mut server = Connected::start(self, traced)?;
        let [system_calls] = in_batches(&mut server, || Ok([trace.calls()?]))?;
        Ok(Cost { system_calls, context_switches, allocations })
    }
}

/// The measured program, and the tools to measure it.
pub(super) struct Meters<'a> {
    program: &'a Path,
    /// For files that are written during the measurement.
    folder: &'a Path,
    preload: Preload,
}

impl<'a> Meters<'a> {
    pub(super) fn new(program: &'a Path, folder: &'a Path) -> Result<Self> {
        Ok(Self { program, folder, preload: Preload::build(folder)? })
    }

    /// The program, counting its allocations from 0.
    fn preloaded(&self) -> Result<Command> {
        let mut command = clean(Command::new(self.program), self.folder);
        self.preload.load_into(&mut command)?;
        Ok(command)
    }

    fn measure_run(&self) -> Result<Cost> {
        let mut command = self.preloaded()?;
        command.args(["run", "true"]);
        let mut before = [0; 2];
        let [allocations, context_switches] = medians((0..RUNS).map(|_| {
            run_to_end(&mut command)?;
            let now = self.preload.of_ended()?;
            Ok(differences(std::mem::replace(&mut before, now), now, 1))
        }))?;
        let [system_calls] = medians((0..RUNS).map(|_| {
            let mut trace = Trace::new(self.folder);
            run_to_end(clean(trace.command(self.program), self.folder).args(["run", "true"]))?;
            Ok([trace.calls()? as f64])
        }))?;
        Ok(Cost { system_calls, context_switches, allocations })
    }
}

/// Sets the same environment everywhere: it is copied for each command, and its path is searched.
fn clean(mut command: Command, folder: &Path) -> Command {
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", folder);
    command
}

fn run_to_end(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    ensure!(status.success(), "`lastbyte run true` ended with {status}");
    Ok(())
}

/// How much each count grows with one command.
fn in_batches<const N: usize>(
    server: &mut Connected,
    mut count: impl FnMut() -> Result<[u64; N]>,
) -> Result<[f64; N]> {
    server.run(WARM_UP)?;
    let mut before = count()?;
    medians((0..BATCHES).map(|_| {
        server.run(BATCH)?;
        let now = count()?;
        Ok(differences(std::mem::replace(&mut before, now), now, BATCH))
    }))
}

fn differences<const N: usize>(before: [u64; N], now: [u64; N], commands: u64) -> [f64; N] {
    std::array::from_fn(|at| now[at].saturating_sub(before[at]) as f64 / commands as f64)
}

/// The median of each column: rare work, like a scan of all processes, is in few samples.
fn medians<const N: usize>(samples: impl Iterator<Item = Result<[f64; N]>>) -> Result<[f64; N]> {
    let samples: Vec<[f64; N]> = samples.collect::<Result<_>>()?;
    Ok(std::array::from_fn(|column| {
        let mut column: Vec<f64> = samples.iter().map(|sample| sample[column]).collect();
        column.sort_unstable_by(f64::total_cmp);
        column[column.len() / 2]
    }))
}

impl Connected {
    fn start(door: Door, command: Command) -> Result<Self> {
        if door == Door::Codex {
            return Ok(Self::Codex(Server::start_alone(command)?));
        }
        let daemon = Daemon::start_with(command)?;
        if door == Door::Coder {
            return Ok(Self::Coder { client: Coder::open(&daemon.unix())?, daemon });
        }
        Ok(Self::Http { client: Connection::open(&daemon.unix())?, daemon })
    }

    fn pid(&self) -> u32 {
        match self {
            Self::Http { daemon, .. } | Self::Coder { daemon, .. } => daemon.pid(),
            Self::Codex(server) => server.pid(),
        }
    }

    fn run(&mut self, commands: u64) -> Result<()> {
        for _ in 0..commands {
            match self {
                Self::Http { client, .. } => {
                    let run = r#"{"command":["/bin/true"],"wait":{"exit":true}}"#;
                    client.post("/v1/processes", run).map(drop)?;
                }
                Self::Coder { client, .. } => {
                    let id = client.start("/bin/true")?;
                    client.wait(&id)?;
                }
                Self::Codex(server) => {
                    server.call("command/exec", r#"{"command":["/bin/true"]}"#)?;
                }
            }
        }
        Ok(())
    }
}
