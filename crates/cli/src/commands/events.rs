//! `lastbyte events`: what happens to all processes, as it happens.

use std::pin::pin;

use lastbyte_client::News;
use lastbyte_client::wire::{Event, EventKind, TimeoutKind};
use lastbyte_sys::Errno;

use crate::exit_code::help::{self, Code};
use crate::server_args::ServerArgs;
use crate::{in_words, own_streams, process_id, rfc3339, tell};

/// Print what happens to processes from now on, a line for each event
///
/// Goes on until it is interrupted or the server ends. A connection that breaks is made again
/// behind the last event; what was missed all the same is told on standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    /// Only events of this session
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    /// Write each event as a line of JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

fn exit_codes() -> String {
    let read = (Code::Is(0), "the reader of its output has gone");
    let ended = (Code::OfSignal, "it was ended by signal N: 130 for Ctrl-C");
    help::list([read, help::UNUSABLE, help::NO_SERVER, ended])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let mut events = args.server.client().await?.events(args.session.as_deref()).await?;
    let mut reader_gone = pin!(own_streams::stdout_reader_gone());
    loop {
        let news = tokio::select! {
            news = events.next() => news?,
            // Nobody reads, so nobody wants more.
            () = &mut reader_gone => return Ok(0),
        };
        let line = match news {
            News::Gap => {
                tell::line("events are missing here");
                continue;
            }
            News::Event { event, .. } if args.json => serde_json::to_string(&event)?,
            News::Event { event, .. } => line(&event),
        };
        let line = format!("{line}\n");
        match own_streams::write_all(rustix::stdio::stdout(), line.as_bytes()) {
            Ok(()) => {}
            Err(Errno::PIPE) => return Ok(0),
            Err(errno) => {
                return Err(anyhow::Error::new(errno).context("cannot write to standard output"));
            }
        }
    }
}

fn line(event: &Event) -> String {
    let (time, id) = (rfc3339::seconds(event.at_unix_ns), process_id::short(&event.process));
    let name = event.event.name();
    let more = match &event.event {
        EventKind::Started | EventKind::FirstOutput | EventKind::Forgotten => String::new(),
        EventKind::TimedOut { which: TimeoutKind::Wall } => "its time is over".into(),
        EventKind::TimedOut { which: TimeoutKind::Idle } => "it was idle too long".into(),
        EventKind::Ended { ending } => in_words::ending(ending),
        EventKind::WorkspaceTouched { paths, .. } => in_words::one_line(&paths.join(" ")),
    };
    format!("{time}  {id}  {name:12}  {more}").trim_end().to_owned()
}
