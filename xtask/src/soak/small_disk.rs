//! A client of the server whose disk is filled and emptied.
//!
//! While there is space, every byte and ending is checked as in kill-loop. While there is none, commands
//! run and end as ever, output is the command's own or reported as missing, and records that are not on
//! disk are reported. Once there is space again, the server recovers by itself.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use lastbyte_client::wire::{
    Cause, ForgetQuery, JournalHealth, Kept, OutputQuery, StartRequest, Status, Wait,
};
use lastbyte_testkit::pattern_bytes;
use tokio::runtime::Runtime;

use crate::kill_loop::{Commands, Job, Native, Server, Tally, again};
use crate::random::Random;

/// Not one of kill-loop's clients.
const CLIENT: u64 = 9;
const WITH_SPACE: Duration = Duration::from_secs(30);
const WITHOUT_SPACE: Duration = Duration::from_secs(10);
/// How long the server may take to write down what it could not.
const RECOVERS: Duration = Duration::from_secs(60);
/// A file in the state directory that is not the server's.
const BALLAST: &str = "ballast";

/// Runs commands until the deadline.
pub(super) fn run(
    program: &Path,
    server: &Server,
    (tally, seed): (&Arc<Tally>, u64),
    deadline: Instant,
) {
    let commands = Commands::new(program, server);
    let native = Native::new(server.unix(), Arc::clone(tally));
    let cycles = async {
        let (mut random, mut nth) = (super::random(seed, 1), 0);
        while Instant::now() < deadline {
            let until = deadline.min(Instant::now() + WITH_SPACE);
            while Instant::now() < until {
                // Not a multiple of ten: those are kept until the end.
                nth += if nth % 10 == 9 { 2 } else { 1 };
                let job = Job::new(&commands, CLIENT, nth, &mut random);
                native.run(job, nth, &mut random.clone()).await;
            }
            without_space(&native, &commands, server, &mut random).await?;
            tally.ran("full disk", 0);
        }
        anyhow::Ok(())
    };
    let outcome = Runtime::new().context("no runtime").and_then(|runtime| runtime.block_on(cycles));
    if let Err(error) = outcome {
        tally.wrong_at("the small disk", &format!("{error:#}"));
    }
}

async fn without_space(
    native: &Native,
    commands: &Commands,
    server: &Server,
    random: &mut Random,
) -> Result<()> {
    let ballast = fill(&server.visible_state()).context("fill the disk")?;
    let until = Instant::now() + WITHOUT_SPACE;
    let mut failed = 0;
    while Instant::now() < until {
        failed += u64::from(run_without_space(native, commands, random).await?);
    }
    ensure!(failed > 0, "no output was missing, so the disk was not full");
    fs::remove_file(ballast).context("empty the disk")?;
    let deadline = Instant::now() + RECOVERS;
    while again(|| native.client.health()).await?.journal != JournalHealth::Ok {
        ensure!(Instant::now() < deadline, "records still wait {RECOVERS:?} after there was space");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Writes until nothing more can be written.
fn fill(state: &Path) -> Result<PathBuf> {
    let path = state.join(BALLAST);
    let mut file = File::create(&path)?;
    loop {
        match file.write(&[0; 64 << 10]) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(path),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns whether output is missing.
async fn run_without_space(
    native: &Native,
    commands: &Commands,
    random: &mut Random,
) -> Result<bool> {
    let (bytes, code) = (random.between(1, 4 << 20), random.between(0, 256) as i32);
    let actions = format!("write-bytes {bytes} then exit {code}");
    let words = actions.split(' ').map(str::to_owned);
    let program = commands.testchild.display().to_string();
    let request = StartRequest {
        command: Some(std::iter::once(program).chain(words).collect()),
        wait: Some(Wait { exit: Some(true), ..Wait::default() }),
        ..StartRequest::default()
    };
    let process = native.client.start(&request).await?.process;
    let id = process.id;
    let ending = process.ending.with_context(|| format!("{id}: no ending"))?;
    ensure!(ending.status == Status::Exited { code }, "{id}: {:?}", ending.status);
    ensure!(ending.cause == Some(Cause::Own), "{id}: {:?}", ending.cause);
    ensure!(ending.final_len == bytes, "{id}: {} bytes, not {bytes}", ending.final_len);
    let missing = match ending.kept {
        Some(Kept::Whole) => Vec::new(),
        Some(Kept::Failed { dropped, .. }) => {
            dropped.iter().map(|gap| gap.start..gap.end).collect()
        }
        kept => bail!("{id}: {kept:?}"),
    };
    let (mut at, all) = (0, pattern_bytes(0..bytes));
    while at < bytes {
        let query = OutputQuery { from: Some(at.cast_signed()), ..OutputQuery::default() };
        let piece = native.client.raw(&id, &query).await?;
        let is_there = |at: &u64| !missing.iter().any(|gap| gap.contains(at));
        let wanted: Vec<u8> =
            (piece.from..piece.next).filter(is_there).map(|at| all[at as usize]).collect();
        ensure!(piece.bytes == wanted, "{id}: wrong bytes in {}..{}", piece.from, piece.next);
        ensure!(piece.next > at, "{id}: nothing after {at} of {bytes}");
        at = piece.next;
    }
    native.client.forget(&id, &ForgetQuery::default()).await?;
    Ok(!missing.is_empty())
}
