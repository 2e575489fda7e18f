//! Commands for which there is no memory.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use lastbyte_client::Client;
use lastbyte_client::wire::{
    Ending, Kept, Met, OutputQuery, Phase, Process, StartRequest, Status, Stdin, Wait, WriteQuery,
};

/// Two commands that must not notice anything: one that writes, one that reads.
pub(super) struct Others<'a> {
    client: &'a Client,
    writer: String,
    reader: String,
}

/// The kernel kills a command that takes all memory, and its ending says so. Other commands go on.
pub(super) async fn all_memory(client: &Client) -> Result<()> {
    let others = Others::start(client).await?;
    // Once at its start, and once after the server has made it the kernel's preferred victim.
    for pause in [0, 2500] {
        let actions = format!("print begun then sleep-ms {pause} then eat-memory");
        let process = run(client, &actions).await?;
        let ending = ending(&process)?;
        ensure!(matches!(ending.status, Status::Signalled { signal: 9, .. }), "{ending:?}");
        check(&process, ending)?;
        others.go_on().await.with_context(|| format!("after a pause of {pause} ms"))?;
    }
    // A child takes all memory: the leader goes on.
    let actions = "print begun then background eat-memory end then sleep-ms 10000 then exit 7";
    let process = run(client, actions).await?;
    let ending = ending(&process)?;
    ensure!(ending.status == Status::Exited { code: 7 }, "{ending:?}");
    check(&process, ending)?;
    others.go_on().await
}

fn check(process: &Process, ending: &Ending) -> Result<()> {
    ensure!(ending.oom_killed, "it does not say that memory ran out: {ending:?}");
    ensure!(ending.kept == Some(Kept::Whole) && process.total == 5, "{ending:?}");
    Ok(())
}

/// A command whose cgroup has no memory for its program fails or is killed, alone. Until its program
/// runs it shares the worker's memory.
pub(super) async fn at_birth(client: &Client) -> Result<()> {
    let others = Others::start(client).await?;
    let (mut failed, mut killed) = (0, 0);
    for kilobytes in [0, 10, 20, 30, 40, 60, 80, 100] {
        run(client, "exit 0").await?;
        let cgroups = free_cgroups()?;
        ensure!(!cgroups.is_empty(), "no cgroup is kept for another command");
        for cgroup in &cgroups {
            fs::write(cgroup.join("memory.max"), (kilobytes << 10).to_string())?;
        }
        match client.start(&request("print begun then exit 5")).await {
            Err(_) => failed += 1,
            Ok(answer) => {
                let process = wait(client, &answer.process.id).await?;
                let ending = ending(&process)?;
                match ending.status {
                    Status::Signalled { signal: 9, .. } if ending.oom_killed => killed += 1,
                    Status::Exited { code: 5 } if process.total == 5 => {}
                    _ => bail!("with {kilobytes} KiB: {ending:?}"),
                }
            }
        }
        for cgroup in &cgroups {
            // It is gone if the kernel has killed a process in it.
            _ = fs::write(cgroup.join("memory.max"), "max");
        }
        others.go_on().await.with_context(|| format!("after a start with {kilobytes} KiB"))?;
    }
    ensure!(failed > 0 && killed > 0, "{failed} starts failed, {killed} commands were killed");
    Ok(())
}

/// Cgroups that the server keeps for its next commands.
fn free_cgroups() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for parent in folders(PathBuf::from("/sys/fs/cgroup/service"))? {
        for cgroup in folders(parent)? {
            if fs::read_to_string(cgroup.join("cgroup.procs")).is_ok_and(|pids| pids.is_empty()) {
                found.push(cgroup);
            }
        }
    }
    Ok(found)
}

fn folders(folder: PathBuf) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    Ok(entries.filter(|path| path.is_dir()).collect())
}

impl<'a> Others<'a> {
    pub(super) async fn start(client: &'a Client) -> Result<Self> {
        let writer = client.start(&request("chatter 20 0")).await?.process.id;
        let open = StartRequest { stdin: Some(Stdin::Open), ..request("cat") };
        let reader = client.start(&open).await?.process.id;
        Ok(Self { client, writer, reader })
    }

    pub(super) async fn go_on(&self) -> Result<()> {
        let written = self.client.show(&self.writer).await?.total;
        let wait = Wait { output_past: Some(written + 20), ..Wait::default() };
        let waited = self.client.wait(&self.writer, &wait).await?;
        ensure!(matches!(waited.wait, Met::OutputPast { .. }), "the writer: {:?}", waited.wait);
        let read = self.client.show(&self.reader).await?.total;
        self.client.write(&self.reader, "line\n", &WriteQuery::default()).await?;
        let wait = Wait { output_past: Some(read + 4), ..Wait::default() };
        let waited = self.client.wait(&self.reader, &wait).await?;
        ensure!(matches!(waited.wait, Met::OutputPast { .. }), "the reader: {:?}", waited.wait);
        let process = run(self.client, "print more then exit 3").await?;
        ensure!(ending(&process)?.status == Status::Exited { code: 3 }, "{process:?}");
        let query = OutputQuery::default();
        ensure!(self.client.raw(&process.id, &query).await?.bytes == "more", "other output");
        Ok(())
    }
}

pub(super) fn request(actions: &str) -> StartRequest {
    let words = format!("/bin/testchild {actions}");
    let command = Some(words.split(' ').map(str::to_owned).collect());
    StartRequest { command, ..StartRequest::default() }
}

/// Runs a command to its end.
async fn run(client: &Client, actions: &str) -> Result<Process> {
    let id = client.start(&request(actions)).await?.process.id;
    wait(client, &id).await.with_context(|| actions.to_owned())
}

pub(super) async fn wait(client: &Client, id: &str) -> Result<Process> {
    let exit = Wait { exit: Some(true), timeout_ms: Some(60_000), ..Wait::default() };
    let process = client.wait(id, &exit).await?.process;
    ensure!(process.phase == Phase::Ended, "{:?}", process.phase);
    Ok(process)
}

pub(super) fn ending(process: &Process) -> Result<&Ending> {
    process.ending.as_ref().context("no ending")
}
