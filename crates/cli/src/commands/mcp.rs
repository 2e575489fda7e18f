//! `lastbyte mcp`: the Model Context Protocol on standard input and output, by the server.
//!
//! A shim without tools of its own: each line becomes a request to the server's `/mcp`, each message of
//! the answer a line. `lines` reads and writes, `message` knows what little of a message matters here,
//! `exchange` sends one and repeats it when the server was away, `client_config` prints how a client is
//! told to start it.

mod client_config;
mod exchange;
mod lines;
mod message;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet, LocalSet};
use uuid::Uuid;

use crate::exit_code::help::{self, Code};
use crate::server_args::ServerArgs;
use crate::stdio;
use client_config::ClientName;
use exchange::Exchange;
use message::Incoming;

/// Serve an agent over standard input and output (MCP)
///
/// Offers seven tools: exec_command, write_stdin, wait, read_output, search_output, list_processes and
/// stop_process. Start this from the settings of an agent; `lastbyte mcp config CLIENT` prints them.
///
/// Commands run in the server, which is started on first use, with the directory and environment of
/// this call. They keep running when the agent goes away. Each call has a session of its own, so that
/// an agent sees only what it has started.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes(), args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Subcommand>,

    /// Share this session: see its processes, and start new ones in it
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    /// Print the settings that make an agent start `lastbyte mcp`
    Config {
        /// The agent
        client: ClientName,
    },
}

fn exit_codes() -> String {
    help::list([
        (Code::OK, "standard input ended, or nobody reads standard output"),
        help::INVALID_ARGS_OR_SETTINGS,
        (Code::FAILURE, "cannot read standard input"),
    ])
}

/// How many requests are sent at one time. Further lines are read when one has its answer.
const MOST_IN_FLIGHT: usize = 256;

/// Returns the exit code.
pub(crate) async fn run(args: Args) -> anyhow::Result<u8> {
    if let Some(Subcommand::Config { client }) = args.command {
        client_config::print(client)?;
        return Ok(0);
    }
    let session = args.session.unwrap_or_else(|| format!("mcp-{}", Uuid::new_v4()));
    let exchange = Rc::new(Exchange::new(args.server, session)?);
    let served = LocalSet::new();
    let serving = served.run_until(serve(exchange));
    tokio::select! {
        served = serving => served.map(|()| 0),
        () = stdio::stdout_reader_gone() => Ok(0),
    }
}

/// Until standard input has ended and everything is answered.
async fn serve(exchange: Rc<Exchange>) -> anyhow::Result<()> {
    let mut input = lines::read()?;
    let (output, written) = lines::write()?;
    let permits = Arc::new(Semaphore::new(MOST_IN_FLIGHT));
    let mut in_flight = InFlight::default();
    while let Some(line) = input.recv().await {
        in_flight.forget_done();
        let incoming = match Incoming::parse(&line?) {
            Ok(incoming) => incoming,
            Err(answer) => {
                // A writer that is gone ends the whole shim.
                _ = output.send(answer).await;
                continue;
            }
        };
        if let Some(id) = incoming.cancelled_id() {
            in_flight.cancel(id);
            continue;
        }
        // Never closed.
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { break };
        let (exchange, output) = (Rc::clone(&exchange), output.clone());
        let id = incoming.id().cloned();
        in_flight.add(id, async move {
            exchange.answer(incoming, &output).await;
            drop(permit);
        });
    }
    in_flight.finish().await;
    drop(output);
    // The writer ends when all of it is written.
    _ = written.await;
    Ok(())
}

/// The requests without an answer, by the id that the client has for each.
#[derive(Default)]
struct InFlight {
    tasks: JoinSet<()>,
    by_id: HashMap<String, AbortHandle>,
}

impl InFlight {
    fn add(&mut self, id: Option<Value>, task: impl Future<Output = ()> + 'static) {
        let handle = self.tasks.spawn_local(task);
        if let Some(id) = id {
            self.by_id.insert(id.to_string(), handle);
        }
    }

    /// Closes the connection of a request. What it has started goes on.
    fn cancel(&mut self, id: &Value) {
        if let Some(handle) = self.by_id.remove(&id.to_string()) {
            handle.abort();
        }
    }

    fn forget_done(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        self.by_id.retain(|_, handle| !handle.is_finished());
    }

    async fn finish(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}
