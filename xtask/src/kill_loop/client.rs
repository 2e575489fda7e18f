//! A client of the native API: runs one job after the other and goes on where it was cut off.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use lastbyte_client::wire::{
    ErrorCode, ForgetQuery, ListQuery, Met, OutputQuery, Process, Status, StopRequest, Stream,
    Wait, WriteQuery,
};
use lastbyte_client::{Address, Client, ClientError};
use lastbyte_testkit::pattern_bytes;
use tokio::time::{Instant, sleep_until, timeout};

use super::job::{Act, Job, LABEL};
use super::reader::{self, Seen, compare};
use super::tally::Tally;
use crate::random::Random;

/// How long a request is repeated while the server is away.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a job may take; one that takes longer hangs.
const HANGS: Duration = Duration::from_secs(90);
/// One job in ten is kept and read once more at the end. There are fewer of them than ended processes
/// that the server keeps.
const KEPT: u64 = 10;
const MOST_KEPT: u64 = 10;

pub(crate) struct Native {
    pub(crate) client: Client,
    tally: Arc<Tally>,
}

/// A process that is read once more when the loop is over.
pub(crate) struct Kept {
    id: String,
    job: Job,
}

/// Whether a process was started.
enum Started {
    As(Box<Process>),
    /// The start was cut off, and there is no such process.
    Never,
    /// This machine has no sandbox.
    Refused,
}

impl Native {
    pub(crate) fn new(address: Address, tally: Arc<Tally>) -> Self {
        Self { client: Client::to(address), tally }
    }

    /// Runs a job and counts what is wrong. Some processes are kept.
    pub(crate) async fn run(&self, job: Job, nth: u64, random: &mut Random) -> Option<Kept> {
        let done = match timeout(HANGS, self.attempt(&job, random)).await {
            Ok(done) => done,
            Err(_) => Err(self.hanging(&job).await),
        };
        match done {
            Ok(Some(id)) if nth.is_multiple_of(KEPT) && nth < KEPT * MOST_KEPT => {
                return Some(Kept { id, job });
            }
            Ok(Some(id)) => {
                if let Err(error) = self.forget(&id).await {
                    self.tally.wrong(&job, &id, format!("cannot forget it: {error:#}"));
                }
            }
            Ok(None) => {}
            Err(error) => self.tally.wrong(&job, "", format!("{error:#}")),
        }
        None
    }

    /// What is known of a job that hangs.
    async fn hanging(&self, job: &Job) -> anyhow::Error {
        let found = self.labelled(job).await;
        anyhow!("hangs for {HANGS:?}, read by {:?}: {found:?}", job.reader)
    }

    /// Reads a kept process again.
    pub(super) async fn check_again(&self, kept: &Kept) {
        let checked = async {
            self.check_stored(&kept.id, &kept.job).await?;
            self.check_only(&kept.job, &kept.id).await?;
            self.forget(&kept.id).await
        };
        if let Err(error) = checked.await {
            self.tally.wrong(&kept.job, &kept.id, format!("at the end: {error:#}"));
        }
    }

    /// Returns the id of a process that was started.
    async fn attempt(&self, job: &Job, random: &mut Random) -> Result<Option<String>> {
        let started = self.start(job).await.context("start")?;
        self.tally.expect_runs(job, matches!(started, Started::As(_)));
        let process = match started {
            Started::As(process) => process,
            Started::Never => return Ok(None),
            Started::Refused => {
                self.tally.not_run(job.kind);
                return Ok(None);
            }
        };
        let id = process.id;
        let mut stops = 0;
        let reading = reader::read(&self.client, &id, job.reader);
        let (seen, acted) = tokio::join!(reading, self.act(&id, job, &mut stops, random));
        let seen: Seen = seen.with_context(|| format!("{id}: read"))?;
        if let Err(error) = acted {
            let shown = again(|| self.client.show(&id)).await?;
            let status = shown.ending.map(|ending| ending.status);
            return Err(error.context(format!("{id} (ending: {status:?}): act")));
        }
        self.tally.ran(job.kind, seen.bytes.len() as u64);
        for problem in seen.problems(&job.output) {
            self.tally.wrong(job, &id, problem);
        }
        self.check_stored(&id, job).await.with_context(|| id.clone())?;
        let shown = again(|| self.client.show(&id)).await.with_context(|| format!("{id}: show"))?;
        let ending = shown.ending.with_context(|| format!("{id}: no ending"))?;
        // A stop that had to be repeated kills at once.
        let killed = stops > 1 && matches!(&ending.status, Status::Signalled { signal: 9, .. });
        if let Some(problem) = job.check_ending(&ending).filter(|_| !killed) {
            self.tally.wrong(job, &id, problem);
        }
        if job.request.key.is_some() && random.percent(20) {
            let same = again(|| self.client.start(&job.request)).await?;
            ensure!(
                same.process.id == id && same.attached,
                "{id}: its key gives {:?}",
                same.process
            );
        }
        self.check_only(job, &id).await.with_context(|| id.clone())?;
        Ok(Some(id))
    }

    /// With a key it is repeated until it is answered. Without one it is sent once.
    async fn start(&self, job: &Job) -> Result<Started> {
        let has_key = job.request.key.is_some();
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.client.start(&job.request).await {
                Ok(answer) => {
                    if answer.attached {
                        self.tally.repeated();
                    }
                    return Ok(Started::As(Box::new(answer.process)));
                }
                Err(ClientError::Refused(error)) if error.code == ErrorCode::SandboxUnavailable => {
                    return Ok(Started::Refused);
                }
                Err(error) if !is_away(&error) || Instant::now() > deadline => Err(error)?,
                Err(ClientError::Connect { .. }) => pause().await,
                Err(_) if has_key => {}
                Err(_) => {
                    let found = self.labelled(job).await?.pop();
                    self.tally.cut_off(found.is_some());
                    return Ok(found.map_or(Started::Never, |one| Started::As(Box::new(one))));
                }
            }
        }
    }

    async fn act(&self, id: &str, job: &Job, stops: &mut u32, random: &mut Random) -> Result<()> {
        match &job.act {
            Act::Nothing => Ok(()),
            Act::Write(range) => {
                let mut at = 0;
                while at < range.end - range.start {
                    let size = random.between(1, 100_000).min(range.end - range.start - at);
                    let begin = range.start + at;
                    at = self.write(id, at, pattern_bytes(begin..begin + size)).await?;
                }
                self.close_input(id).await
            }
            Act::Stop => self.stop(id, stops).await,
            Act::Wait(wait) => {
                let answer = again(|| self.client.wait(id, wait)).await?;
                match (answer.wait, wait.port, &wait.pattern) {
                    (Met::Port { port }, Some(wanted), _) if port == wanted => {}
                    (Met::Pattern { text, .. }, _, Some(_))
                        if job.output.stdout.starts_with(text.as_bytes()) => {}
                    (met, port, _) => {
                        bail!("waited for {}, and got {met:?}", port.map_or("a line", |_| "a port"))
                    }
                }
                self.close_input(id).await
            }
        }
    }

    /// Returns the offset of the next write.
    async fn write(&self, id: &str, offset: u64, bytes: Vec<u8>) -> Result<u64> {
        let end = offset + bytes.len() as u64;
        let query = WriteQuery { offset: Some(offset), ..Default::default() };
        let accepted = again(|| self.client.write(id, bytes.clone(), &query)).await?.accepted;
        ensure!(accepted == end, "{accepted} bytes of input are accepted instead of {end}");
        Ok(accepted)
    }

    /// Without an offset, so that a request that was cut off is seen here: it may have closed it.
    async fn close_input(&self, id: &str) -> Result<()> {
        let query = WriteQuery { close: Some(true), ..Default::default() };
        let mut was_cut_off = false;
        loop {
            match self.client.write(id, Vec::new(), &query).await {
                Ok(_) => return Ok(()),
                Err(ClientError::Refused(_)) if was_cut_off => return Ok(()),
                Err(error) if !is_away(&error) => return Err(error.into()),
                Err(_) => was_cut_off = true,
            }
            pause().await;
        }
    }

    /// Once it is ready. A stop that was cut off may not have arrived: it is repeated if nothing
    /// comes of it.
    async fn stop(&self, id: &str, stops: &mut u32) -> Result<()> {
        let ready = Wait { output_past: Some(0), ..Wait::default() };
        again(|| self.client.wait(id, &ready)).await?;
        let ended = Wait { exit: Some(true), timeout_ms: Some(6000), ..Wait::default() };
        loop {
            match self.client.stop(id, &StopRequest::default()).await {
                Ok(proof) => {
                    *stops += 1;
                    // The others may belong to another command.
                    let is_ours = |pid: &&i32| !proof.unattributed.contains(pid);
                    let left: Vec<&i32> = proof.left.iter().filter(is_ours).collect();
                    ensure!(left.is_empty(), "left after the stop: {left:?}");
                    return Ok(());
                }
                Err(ClientError::Connect { .. }) => pause().await,
                Err(error) if is_away(&error) => {
                    *stops += 1;
                    if again(|| self.client.wait(id, &ended)).await?.wait == Met::Exit {
                        return Ok(());
                    }
                }
                Err(error) => Err(error)?,
            }
        }
    }

    /// Reads the log from its beginning, after the end.
    async fn check_stored(&self, id: &str, job: &Job) -> Result<()> {
        let output = &job.output;
        let streams: &[_] = match &output.stderr {
            None => &[(None, &output.stdout)],
            Some(stderr) => {
                &[(Some(Stream::Stdout), &output.stdout), (Some(Stream::Stderr), stderr)]
            }
        };
        for (stream, wanted) in streams {
            let (mut stored, mut from) = (Vec::new(), 0);
            loop {
                let query = OutputQuery {
                    from: Some(from),
                    stream: *stream,
                    late: Some(true),
                    max_bytes: Some(1 << 20),
                    ..OutputQuery::default()
                };
                let piece = again(|| self.client.raw(id, &query)).await?;
                ensure!(piece.dropped.is_empty(), "dropped {:?}", piece.dropped);
                stored.extend_from_slice(&piece.bytes);
                from = piece.next.cast_signed();
                if piece.next >= piece.total {
                    break;
                }
            }
            if let Some(problem) = compare(&stored, wanted, output.may_be_cut) {
                bail!("stored {stream:?}: {problem}");
            }
        }
        Ok(())
    }

    /// There is one process of this job, and it is this one.
    async fn check_only(&self, job: &Job, id: &str) -> Result<()> {
        let found: Vec<String> =
            self.labelled(job).await?.into_iter().map(|process| process.id).collect();
        ensure!(found == [id], "started as {found:?}");
        Ok(())
    }

    async fn labelled(&self, job: &Job) -> Result<Vec<Process>> {
        let label = Some(format!("{LABEL}={}", job.name));
        let query = ListQuery { label, ..ListQuery::default() };
        Ok(again(|| self.client.list(&query)).await?.processes)
    }

    async fn forget(&self, id: &str) -> Result<()> {
        let query = ForgetQuery::default();
        match again(|| self.client.forget(id, &query)).await {
            // An earlier attempt that was not answered has done it.
            Err(error) if refusal(&error) == Some(ErrorCode::ProcessNotFound) => Ok(()),
            done => done,
        }
    }
}

/// Repeats a request, which must be safe to repeat, until the server answers.
pub(crate) async fn again<T, F>(mut ask: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T, ClientError>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Err(error) if is_away(&error) && Instant::now() < deadline => pause().await,
            // Its queue is full until it reads.
            Err(ClientError::Refused(error)) if error.code == ErrorCode::StdinFull => pause().await,
            answer => return Ok(answer?),
        }
    }
}

/// Whether there was no answer.
pub(super) fn is_away(error: &ClientError) -> bool {
    match error {
        ClientError::Connect { .. } | ClientError::Protocol { .. } => true,
        ClientError::Foreign { status, .. } => status.is_none(),
        ClientError::StartUnknown { .. } => true,
        ClientError::Refused(_) => false,
    }
}

pub(super) async fn pause() {
    sleep_until(Instant::now() + Duration::from_millis(1)).await;
}

fn refusal(error: &anyhow::Error) -> Option<ErrorCode> {
    match error.downcast_ref() {
        Some(ClientError::Refused(error)) => Some(error.code),
        _ => None,
    }
}
