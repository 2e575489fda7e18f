//! `lastbyte upgrade`: another version of the server, while everything that it runs goes on.

use std::path::{PathBuf, absolute};
use std::time::Duration;

use anyhow::{Context, bail};
use lastbyte_client::Client;
use lastbyte_client::wire::{Health, UpgradeAnswer, UpgradeRequest};
use tokio::time::{Instant, sleep_until, timeout};

use crate::exit_code::help::{self, Code};
use crate::server_args::ServerArgs;
use crate::{print, status_line};

/// Replace the program of the running server; its commands go on
///
/// The server tries the other program first and refuses it if it cannot take over. If the other
/// program fails to start nevertheless, the server goes on with the one from before.
///
/// Connections are closed, and clients reconnect. Options of `serve` stay as they are.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    /// Upgrade to this program [default: the one that runs this command]
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,

    /// Print both versions and the pid of the new worker as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

/// Longer than the keeper waits for a worker that hangs. Only to end what hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

fn exit_codes() -> String {
    help::list([
        (Code::OK, "the server runs the other program"),
        help::INVALID_ARGS_OR_SETTINGS,
        (
            Code::FAILURE,
            "no server is running, it refused the program, or the program failed and was replaced by \
             the one from before",
        ),
    ])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let binary = match &args.binary {
        Some(path) => absolute(path).context("invalid --binary")?,
        None => std::env::current_exe().context("cannot find the program of this command")?,
    };
    let binary = binary.into_os_string().into_string();
    let binary = binary.map_err(|path| anyhow::anyhow!("{} is not UTF-8", path.display()))?;
    // That connections are lost is no news here.
    let client = args.server.client().await?.on_reconnect(|| {});
    let before = client.health().await?;
    let upgrading = async {
        let agreed = client.upgrade(&UpgradeRequest { binary }).await?;
        let after = until_over(&client, agreed.worker_pid).await?;
        anyhow::Ok((agreed, after))
    };
    let (agreed, after) = status_line::during("upgrading the server", upgrading).await?;
    if restarts(&after) > restarts(&before) {
        let crash = after.keeper.and_then(|keeper| keeper.last_crash);
        bail!("the upgrade failed: the worker {}", crash.as_deref().unwrap_or("crashed"));
    }
    let worker_pid = after.keeper.map_or(after.pid, |keeper| keeper.worker_pid);
    let done = UpgradeAnswer { from: agreed.from, to: after.version, worker_pid };
    print::answer(args.json, &done, |done| {
        format!("upgraded from {} to {} (worker pid {worker_pid})\n", done.from, done.to)
    })?;
    Ok(0)
}

/// What another worker than this one says.
async fn until_over(client: &Client, worker: u32) -> anyhow::Result<Health> {
    let over = async {
        loop {
            // A worker that leaves closes its connections.
            match client.health().await {
                Ok(health)
                    if health.keeper.as_ref().is_none_or(|keeper| keeper.worker_pid != worker) =>
                {
                    return health;
                }
                Ok(_) | Err(_) => sleep_until(Instant::now() + PAUSE).await,
            }
        }
    };
    let late = || format!("the new worker did not answer within {PATIENCE:?}");
    timeout(PATIENCE, over).await.with_context(late)
}

fn restarts(health: &Health) -> u32 {
    health.keeper.as_ref().map_or(0, |keeper| keeper.restarts)
}
