//! `lastbyte drain`: a node of a fleet takes no more commands.

use lastbyte_client::wire::DrainRequest;

use crate::exit_code::help;
use crate::server_args::ServerArgs;

/// Start no more commands on a node of a fleet; what runs there goes on
///
/// The node stays so until it is undone or its server is started again.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    /// The name of the node
    #[arg(value_name = "NODE")]
    node: String,

    /// Take commands again
    #[arg(long)]
    undo: bool,

    #[command(flatten)]
    server: ServerArgs,
}

fn exit_codes() -> String {
    help::list([help::SUCCESS, help::INVALID_ARGS_OR_SETTINGS, help::NO_SERVER])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let request = DrainRequest { drain: Some(!args.undo) };
    args.server.client().await?.drain(&args.node, &request).await?;
    Ok(0)
}
