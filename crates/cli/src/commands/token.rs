//! `lastbyte token`: tokens for clients on a port.

use std::time::Duration;

use lastbyte_client::wire::{CreateTokenRequest, TokenInfo, TokenScope};

use crate::exit_code::help;
use crate::format::{self, Cell, in_largest_unit};
use crate::server_args::ServerArgs;
use crate::{autostart, print, timestamp, units};

/// Create, list and revoke tokens for clients on a port
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes(), disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TokenCommand {
    Create(CreateArgs),
    List(ListArgs),
    Revoke(RevokeArgs),
}

/// Create a token and print it, this one time
///
/// Without `--session` and `--read-only` the token allows everything. Clients send it as
/// `Authorization: Bearer TOKEN`, or read it from a file with `--token-file`.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
struct CreateArgs {
    /// Allow only the processes of this session
    #[arg(long, value_name = "NAME", conflicts_with = "read_only")]
    session: Option<String>,

    /// Allow only what changes nothing
    #[arg(long)]
    read_only: bool,

    /// Let the token expire after this time, like 24h or 7d
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    expires: Option<Duration>,

    /// Say what the token is for
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Print the token and what it allows as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

/// List the created tokens, without their secrets
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

/// Revoke a token and close the connections of its clients
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
struct RevokeArgs {
    /// The id of the token, from `token list`
    #[arg(value_name = "ID")]
    id: String,

    /// Print the id of the revoked token as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

fn exit_codes() -> String {
    help::list([help::SUCCESS, help::INVALID_ARGS_OR_SETTINGS, help::NO_SERVER])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    match &args.command {
        TokenCommand::Create(args) => create(args).await?,
        TokenCommand::List(args) => list(args).await?,
        TokenCommand::Revoke(args) => revoke(args).await?,
    }
    Ok(0)
}

async fn create(args: &CreateArgs) -> anyhow::Result<()> {
    let request = CreateTokenRequest {
        session: args.session.clone(),
        read_only: args.read_only.then_some(true),
        expires_in_ms: args.expires.map(units::ms),
        note: args.note.clone(),
    };
    let client = autostart::client_of_history(&args.server).await?;
    let answer = client.create_token(&request).await?;
    print::answer(args.json, &answer, |answer| format!("{}\n", answer.token))
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let list = autostart::client_of_history(&args.server).await?.tokens().await?;
    print::answer(args.json, &list, |list| {
        let rows: Vec<Vec<Cell>> = list.tokens.iter().map(row).collect();
        format::table(&["ID", "SCOPE", "EXPIRES", "NOTE"], &rows, None)
    })
}

async fn revoke(args: &RevokeArgs) -> anyhow::Result<()> {
    autostart::client_of_history(&args.server).await?.revoke_token(&args.id).await?;
    if args.json {
        print::json_result(&serde_json::json!({ "revoked": args.id }))?;
    }
    Ok(())
}

fn row(token: &TokenInfo) -> Vec<Cell> {
    let scope = match &token.scope {
        TokenScope::All => "all".to_owned(),
        TokenScope::ReadOnly => "read-only".to_owned(),
        TokenScope::Session { name } => format!("session {}", format::one_line(name)),
    };
    let expires = token.expires_unix_ns.map_or("never".to_owned(), expires);
    let note = token.note.as_deref().map(format::one_line).unwrap_or_default();
    [token.id.clone(), scope, expires, note].map(Cell::from).to_vec()
}

fn expires(unix_ns: u64) -> String {
    match unix_ns.checked_sub(timestamp::now()) {
        Some(left) => format!("in {}", in_largest_unit(Duration::from_nanos(left))),
        None => "expired".into(),
    }
}
