//! `lastbyte write`: input for a process that was started with it open.

use std::time::Duration;

use anyhow::Context;
use lastbyte_client::wire::{ErrorCode, WriteAnswer, WriteQuery};
use lastbyte_client::{Client, ClientError};
use tokio::time::{Instant, sleep_until};

use crate::process_args::ProcessArgs;
use crate::{exit_code, print, stdio, units};

/// Write to the standard input of a process
///
/// The text is written unchanged: for a line, end it with a newline or use --line. Without text and
/// keys, standard input is passed on until it ends, as fast as the process reads.
///
/// A key is a character or a name: Enter, Tab, Escape, Space, Comma, Backspace, Delete, Insert, Home,
/// End, PageUp, PageDown, Up, Down, Left, Right, F1 to F12. Modifiers come before it: C-c, M-Left,
/// S-Tab; also ctrl+c and ^C. Most keys need a terminal.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_code::help::process_query_codes())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// Text to write
    text: Option<String>,

    /// Add a newline after the text
    #[arg(long, requires = "text")]
    line: bool,

    /// Type this key after the text; repeatable
    #[arg(long = "key", value_name = "KEY", allow_hyphen_values = true)]
    keys: Vec<String>,

    /// Close standard input afterwards
    #[arg(long)]
    close: bool,

    /// Byte offset of this input; bytes the server already accepted are not written again
    #[arg(long, value_name = "BYTES", value_parser = units::parse_whole::<u64>, allow_hyphen_values = true)]
    offset: Option<u64>,

    /// Print the server's answer as JSON: how many bytes it has accepted in total
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
        None if args.keys.is_empty() => pass_on(&client, &id, args).await?,
        text => {
            let end = if args.line { "\n" } else { "" };
            let text = text.as_deref().unwrap_or_default();
            let close = args.close.then_some(true);
            let query = WriteQuery { offset: args.offset, close, keys: args.key_list() };
            client.write(&id, format!("{text}{end}"), &query).await?
        }
    };
    if args.json {
        print::json_result(&written)?;
    }
    Ok(0)
}

impl Args {
    /// As the server takes them.
    fn key_list(&self) -> Option<String> {
        let name = |key: &String| if key == "," { "Comma".into() } else { key.clone() };
        let names: Vec<String> = self.keys.iter().map(name).collect();
        (!names.is_empty()).then(|| names.join(","))
    }
}

async fn pass_on(client: &Client, id: &str, args: &Args) -> anyhow::Result<WriteAnswer> {
    let mut offset = args.offset;
    loop {
        let mut bytes = vec![0; PIECE];
        let count = stdio::read_stdin(&mut bytes).context("cannot read standard input")?;
        bytes.truncate(count);
        let close = (count == 0 && args.close).then_some(true);
        let query = WriteQuery { offset, close, keys: None };
        let written = write_with_retry(client, id, bytes, &query).await?;
        if count == 0 {
            return Ok(written);
        }
        offset = Some(written.accepted);
    }
}

/// Tries again while the process does not read what it was given before.
async fn write_with_retry(
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
