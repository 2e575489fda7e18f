//! `lastbyte shutdown`: the end of the server and of all that it runs.

use crate::exit_code;
use crate::server_args::ServerArgs;

/// Stop everything that the server runs, and end the server
#[derive(Debug, clap::Args)]
#[command(after_help = exit_code::CLIENT_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    server: ServerArgs,
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let client = args.server.client()?;
    // The feed ends when the server does.
    let mut events = client.events(None).await?;
    client.shutdown().await?;
    while events.next().await.is_ok() {}
    Ok(0)
}
