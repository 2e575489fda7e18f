//! `lastbyte shutdown`: the end of the server and of all that it runs.

use anyhow::bail;
use lastbyte_client::wire::Health;
use lastbyte_client::{Address, Client};

use crate::daemon::instance::{ShuttingDown, open_pidfd, until_gone};
use crate::exit_code::help;
use crate::server_args::{ServerArgs, is_not_running};
use crate::status_line::during;
use crate::{client_error, print};

/// Stop everything the server runs, then the server itself
///
/// Returns when the server is gone; for a server on a TCP port, as soon as it has agreed to stop. Standard
/// error says how many processes were running.
#[derive(Debug, clap::Args)]
#[command(after_help = help::list([help::SUCCESS, help::INVALID_ARGS_OR_SETTINGS, help::NO_SERVER]))]
pub(crate) struct Args {
    /// Print the server's pid as JSON when done, and no message
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (pid, done) = match args.server.client().await {
        Ok(client) => shut_down(&client).await?,
        // It is shutting down already, which is what we want.
        Err(error) => {
            let server: ShuttingDown = error.downcast()?;
            let pid = server.pid;
            during(WHAT, server.until_gone()).await?;
            (pid, format!("stopped the server (pid {pid})"))
        }
    };
    if args.json {
        print::json_result(&serde_json::json!({ "shut_down": pid }))?;
    } else {
        print::message(done);
    }
    Ok(0)
}

const WHAT: &str = "waiting until the server and everything it runs have stopped";

/// Returns the server's pid, and what was done. The server cannot say what it stopped, since it is gone
/// then, so this says what was running before.
async fn shut_down(client: &Client) -> anyhow::Result<(u32, String)> {
    let Health { pid, running, .. } = match client.health().await {
        Err(error) if is_not_running(&error) => {
            bail!("{}; nothing to stop", client_error::not_running(client.address()))
        }
        health => health?,
    };
    let server = match client.address() {
        Address::Unix(_) => open_pidfd(pid),
        Address::Tcp { .. } => None,
    };
    let done = match server {
        Some(_) => format!("stopped the server (pid {pid}){}", was_running(running)),
        None => format!("the server (pid {pid}) is stopping{}", was_running(running)),
    };
    let gone = async {
        client.shutdown().await?;
        match server {
            Some(server) => until_gone(server, pid).await,
            None => Ok(()),
        }
    };
    during(WHAT, gone).await?;
    Ok((pid, done))
}

/// The server does not tell it to a client without a token.
fn was_running(count: Option<u64>) -> String {
    match count {
        None => String::new(),
        Some(0) => "; nothing was running".into(),
        Some(1) => "; 1 process was running".into(),
        Some(count) => format!("; {count} processes were running"),
    }
}
