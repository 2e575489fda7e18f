//! `lastbyte shutdown`: the end of the server and of all that it runs.

use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::bail;
use lastbyte_client::Address;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::server_args::ServerArgs;
use crate::{exit_code, tell};

/// Stop everything that the server runs, and end the server
///
/// Returns when the server is gone, or, when it listens on a port, as soon as it has agreed to go.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_code::CLIENT_HELP)]
pub(crate) struct Args {
    /// Write the server's pid as JSON when it is done
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

/// Past every grace that a server gives. Only to end what hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let client = args.server.client().await?;
    let pid = client.health().await?.pid;
    let server = match client.address() {
        Address::Unix(_) => open(pid),
        Address::Tcp { .. } => None,
    };
    client.shutdown().await?;
    if let Some(server) = server {
        until_gone(&server, pid)?;
    }
    if args.json {
        tell::json_result(&serde_json::json!({ "shut_down": pid }))?;
    }
    Ok(0)
}

fn until_gone(server: &OwnedFd, pid: u32) -> anyhow::Result<()> {
    let mut gone = [PollFd::new(server, PollFlags::IN)];
    let patience = PATIENCE.try_into()?;
    match rustix::io::retry_on_intr(|| poll(&mut gone, Some(&patience)))? {
        0 => bail!("the server (pid {pid}) agreed to go, and is still there after {PATIENCE:?}"),
        _ => Ok(()),
    }
}

/// `None` when it is gone already, or when the number means somebody else here: a socket can be
/// shared with a container.
fn open(pid: u32) -> Option<OwnedFd> {
    let server = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    (name.trim_end() == "lastbyte").then_some(server)
}
