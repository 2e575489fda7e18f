//! `lastbyte shutdown`: the end of the server and of all that it runs.

use lastbyte_client::{Address, Client};

use crate::daemon::departing::{ShuttingDown, open, until_gone};
use crate::server_args::ServerArgs;
use crate::{exit_code, tell};

/// Stop everything that the server runs, and end the server
///
/// Returns when the server is gone, or, when it listens on a port, as soon as it has agreed to go.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_code::help::of_asking())]
pub(crate) struct Args {
    /// Write the server's pid as JSON when it is done
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let pid = match args.server.client().await {
        Ok(client) => shut_down(&client).await?,
        // Somebody else has asked it, and both want it gone.
        Err(error) => {
            let server: ShuttingDown = error.downcast()?;
            server.until_gone()?;
            server.pid
        }
    };
    if args.json {
        tell::json_result(&serde_json::json!({ "shut_down": pid }))?;
    }
    Ok(0)
}

async fn shut_down(client: &Client) -> anyhow::Result<u32> {
    let pid = client.health().await?.pid;
    let server = match client.address() {
        Address::Unix(_) => open(pid),
        Address::Tcp { .. } => None,
    };
    client.shutdown().await?;
    if let Some(server) = server {
        until_gone(&server, pid)?;
    }
    Ok(pid)
}
