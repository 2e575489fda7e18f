//! `lastbyte nodes`: the machines of a fleet.

use lastbyte_client::wire::{Node, NodeReport};

use crate::exit_code::help;
use crate::format::{self, Cell};
use crate::server_args::ServerArgs;
use crate::{print, stdio};

/// List the nodes of a fleet
///
/// A node is `present`, `draining` (it takes no more commands), `silent` (it was not heard for some
/// seconds; the state of its processes is unknown) or `gone` (for so long that it has left the fleet until
/// it joins again).
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    /// Print JSON, one node per line
    #[arg(long)]
    json: bool,

    /// Forget this node, which is gone and does not come back, instead of listing it as silent for ever
    #[arg(long, value_name = "NODE", conflicts_with = "json")]
    forget: Option<String>,

    #[command(flatten)]
    server: ServerArgs,
}

fn exit_codes() -> String {
    help::list([help::SUCCESS, help::INVALID_ARGS_OR_SETTINGS, help::NO_SERVER])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let client = args.server.client().await?;
    if let Some(node) = &args.forget {
        client.forget_node(node).await?;
        return Ok(0);
    }
    let nodes = client.nodes().await?.nodes;
    if args.json {
        for node in &nodes {
            print::json_result(node)?;
        }
        return Ok(0);
    }
    let rows: Vec<Vec<Cell>> = nodes.iter().map(row).collect();
    let heading = ["NODE", "STATE", "FREE", "LOAD", "LABELS"];
    print::result(format::table(&heading, &rows, stdio::width_of_stdout()))?;
    Ok(0)
}

fn row(node: &Node) -> Vec<Cell> {
    let state = node.state.as_str().to_owned().into();
    let Some(NodeReport { labels, free_slots, load, .. }) = &node.last else {
        let nothing = || Cell::from(String::new());
        return vec![node.name.clone().into(), state, nothing(), nothing(), nothing()];
    };
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    vec![
        node.name.clone().into(),
        state,
        free_slots.to_string().into(),
        format!("{}%", load / 10).into(),
        labels.join(",").into(),
    ]
}
