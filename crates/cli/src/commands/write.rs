//! `lastbyte write`: input for a process that was started with it open.

use std::time::Duration;

use anyhow::Context;
use lastbyte_client::wire::{ErrorCode, WriteAnswer, WriteQuery};
use lastbyte_client::{Client, ClientError};
use tokio::time::{Instant, sleep_until};

use crate::process_args::ProcessArgs;
use crate::{exit_code, own_streams, tell};

/// Write to the standard input of a process
///
/// The text is written as it is: for a line, end it with a newline or give --line. Without a text,
/// standard input is passed on to its end, as fast as the process reads.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_code::help::of_asking_about_one())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// What to write
    text: Option<String>,

    /// Write a newline behind the text
    #[arg(long, requires = "text")]
    line: bool,

    /// Close standard input behind it
    #[arg(long)]
    close: bool,

    /// Where in the input it belongs; what was accepted before is not written again
    #[arg(long, value_name = "BYTES")]
    offset: Option<u64>,

    /// Write the server's answer as JSON: how many bytes it has accepted in all
    #[arg(long)]
    json: bool,
}

/// Sent at once.
const PIECE: usize = 64 * 1024;
/// Between two tries, while the process reads nothing.
const PAUSES: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(200)];

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (client, id) = args.process.find().await?;
    let written = match &args.text {
        Some(text) => {
            let end = if args.line { "\n" } else { "" };
            let query = WriteQuery { offset: args.offset, close: args.close.then_some(true) };
            client.write(&id, format!("{text}{end}"), &query).await?
        }
        None => pass_on(&client, &id, args).await?,
    };
    if args.json {
        tell::json_result(&written)?;
    }
    Ok(0)
}

async fn pass_on(client: &Client, id: &str, args: &Args) -> anyhow::Result<WriteAnswer> {
    let mut offset = args.offset;
    loop {
        let mut bytes = vec![0; PIECE];
        let count = own_streams::read_stdin(&mut bytes).context("cannot read standard input")?;
        bytes.truncate(count);
        let query = WriteQuery { offset, close: (count == 0 && args.close).then_some(true) };
        let written = patiently(client, id, bytes, &query).await?;
        if count == 0 {
            return Ok(written);
        }
        offset = Some(written.accepted);
    }
}

/// Tries again while the process does not read what it was given before.
async fn patiently(
    client: &Client,
    id: &str,
    bytes: Vec<u8>,
    query: &WriteQuery,
) -> Result<WriteAnswer, ClientError> {
    let [mut pause, longest] = PAUSES;
    loop {
        match client.write(id, bytes.clone(), query).await {
            Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::StdinFull => {
                sleep_until(Instant::now() + pause).await;
                pause = (pause * 2).min(longest);
            }
            answer => return answer,
        }
    }
}
