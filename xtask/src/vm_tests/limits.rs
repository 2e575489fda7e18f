//! Limits that the kernel enforces by cgroup.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lastbyte_client::Client;
use lastbyte_client::wire::{
    Cause, Cpus, Ending, ForgetQuery, LimitEnforcement, LimitKind, Limits, OutputQuery, Process,
    StartRequest, Status, Wait,
};

use super::oom::{Others, ending, request, wait};
use crate::bench::samples::Samples;

/// Whether a process ended as its limit asks for.
type Check = fn(&Process, &Ending) -> Result<()>;

/// Each hog is stopped or refused by its own limit, which its ending names, and others go on.
pub(super) async fn by_cgroup(client: &Client) -> Result<()> {
    let others = Others::start(client).await?;
    let hogs: [(&str, Limits, Check); 5] = [
        ("eat-memory", Limits { memory_bytes: Some(64 << 20), ..strict() }, memory),
        ("eat-memory 1", Limits { memory_bytes: Some(64 << 20), ..strict() }, memory),
        (
            "fork-bomb 100 then sleep-ms 3000 then exit 0",
            Limits { pids: Some(10), ..strict() },
            pids,
        ),
        ("spin", Limits { cpu_time_ms: Some(1000), ..strict() }, cpu_time),
        ("grow-file /tmp/file", Limits { file_size_bytes: Some(1 << 20), ..strict() }, file_size),
    ];
    for (actions, limits, check) in hogs {
        let (process, neighbours) =
            beside(client, actions, limits).await.with_context(|| actions.to_owned())?;
        println!("{actions}: {neighbours}");
        let ending = ending(&process)?;
        check(&process, ending).with_context(|| format!("{actions}: {ending:?}"))?;
        others.go_on().await.with_context(|| format!("after {actions}"))?;
    }
    descriptors(client).await?;
    half_a_processor(client).await?;
    others.go_on().await
}

fn strict() -> Limits {
    Limits { strict: true, ..Limits::default() }
}

async fn run(client: &Client, actions: &str, limits: Limits) -> Result<Process> {
    let request = StartRequest { limits: Some(limits), ..request(actions) };
    let id = client.start(&request).await?.process.id;
    wait(client, &id).await
}

/// Runs a hog to its end, and starts others meanwhile and afterwards. Also returns how long these took.
async fn beside(client: &Client, actions: &str, limits: Limits) -> Result<(Process, String)> {
    let request = StartRequest { limits: Some(limits), ..request(actions) };
    let id = client.start(&request).await?.process.id;
    let mut times = [Vec::new(), Vec::new()];
    while client.show(&id).await?.ending.is_none() {
        times[0].push(start_another(client).await?);
    }
    for _ in 0..times[0].len().max(20) {
        times[1].push(start_another(client).await?);
    }
    let [beside, idle] = times.map(|times| (times.len(), Samples::new(times)));
    let mut text = format!("idle {}", idle.1);
    if beside.0 > 0 {
        let ratio =
            |share| beside.1.quantile(share).as_secs_f64() / idle.1.quantile(share).as_secs_f64();
        text = format!(
            "beside {}; {text}; ratio {:.2} at p50, {:.2} at p99",
            beside.1,
            ratio(0.5),
            ratio(0.99)
        );
    }
    Ok((wait(client, &id).await?, text))
}

/// Starts a command that exits at once and waits for it.
async fn start_another(client: &Client) -> Result<Duration> {
    let exit = Wait { exit: Some(true), ..Wait::default() };
    let request = StartRequest { wait: Some(exit), ..request("exit 0") };
    let begun = Instant::now();
    let id = client.start(&request).await?.process.id;
    let took = begun.elapsed();
    client.forget(&id, &ForgetQuery::default()).await?;
    Ok(took)
}

fn is_cause(ending: &Ending, limit: LimitKind) -> Result<()> {
    let is_limit = matches!(ending.cause, Some(Cause::Limit { which, .. }) if which == limit);
    ensure!(is_limit && ending.limits_hit == [limit], "another cause");
    Ok(())
}

fn memory(process: &Process, ending: &Ending) -> Result<()> {
    is_cause(ending, LimitKind::Memory)?;
    ensure!(matches!(ending.status, Status::Signalled { signal: 9, .. }), "another status");
    let by = process.limits_enforced.and_then(|by| by.memory);
    ensure!(by == Some(LimitEnforcement::Kernel) && ending.oom_killed, "not by the kernel");
    let peak = ending.usage.and_then(|usage| usage.peak_memory).context("no peak")?;
    ensure!((60 << 20..=64 << 20).contains(&peak), "a peak of {peak}");
    Ok(())
}

/// The kernel refuses to fork, so the bomb fails by itself.
fn pids(process: &Process, ending: &Ending) -> Result<()> {
    ensure!(ending.cause == Some(Cause::Own), "another cause");
    ensure!(ending.limits_hit == [LimitKind::Pids], "the limit is not named");
    let by = process.limits_enforced.and_then(|by| by.pids);
    ensure!(by == Some(LimitEnforcement::Kernel), "not by the kernel");
    Ok(())
}

fn cpu_time(_: &Process, ending: &Ending) -> Result<()> {
    is_cause(ending, LimitKind::CpuTime)
}

fn file_size(_: &Process, ending: &Ending) -> Result<()> {
    is_cause(ending, LimitKind::FileSize)
}

async fn descriptors(client: &Client) -> Result<()> {
    let limits = Limits { open_files: Some(20), ..strict() };
    let process = run(client, "open-files", limits).await?;
    let output = client.raw(&process.id, &OutputQuery::default()).await?.bytes;
    ensure!(output == "20 Some(24)", "{output:?}");
    Ok(())
}

/// It gets a processor half of the time.
async fn half_a_processor(client: &Client) -> Result<()> {
    let limits = Limits { cpus: Cpus::new(0.5), cpu_time_ms: Some(2000), ..strict() };
    let process = run(client, "spin", limits).await?;
    let ending = ending(&process)?;
    let ran = Duration::from_nanos(ending.times.ran_ns.context("no time")?);
    ensure!(ran > Duration::from_secs(3), "2 s of half a processor took {ran:?}");
    Ok(())
}
