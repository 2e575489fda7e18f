//! `lastbyte events`: what happens to all processes, as it happens.

use std::pin::pin;

use anyhow::bail;
use lastbyte_client::News;
use lastbyte_client::wire::{Event, EventKind, TimeoutKind};

use crate::client_error::is_gone;
use crate::colour::{Tone, paint};
use crate::exit_code::help::{self, Code};
use crate::select_args::called;
use crate::server_args::ServerArgs;
use crate::stdio::{self, Reader};
use crate::timestamp::Zone;
use crate::{format, print};

/// Print an event per line as things happen to processes
///
/// A line has the time, the name of the process or the end of its id, and what happened.
///
/// Runs until interrupted or until the server stops. If the connection breaks, it reconnects and
/// continues after the last event; if events were missed, standard error says so.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    /// Print only events of this session
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    /// Print each event as a line of JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    zone: Zone,

    #[command(flatten)]
    server: ServerArgs,
}

fn exit_codes() -> String {
    let read = (Code::OK, "the reader of its output is gone");
    let ended = (Code::Signal, "ended by signal N: 130 for Ctrl-C");
    let stopped =
        (Code::FAILURE, "no server is running, it refused the request, or it has stopped");
    help::list([read, help::INVALID_ARGS_OR_SETTINGS, stopped, ended])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let mut events = args.server.client().await?.events(args.session.as_deref()).await?;
    let mut reader_gone = pin!(stdio::stdout_reader_gone());
    loop {
        let news = tokio::select! {
            news = events.next() => match news {
                Err(error) if is_gone(&error) => bail!("the server is gone"),
                news => news?,
            },
            // Without a reader there is nothing more to print.
            () = &mut reader_gone => return Ok(0),
        };
        let line = match news {
            News::Gap => {
                print::message("some events were missed");
                continue;
            }
            News::Event { event, .. } if args.json => serde_json::to_string(&event)?,
            News::Event { event, .. } => line(&event, args.zone),
        };
        if stdio::write_stdout(format!("{line}\n").as_bytes())? == Reader::Gone {
            return Ok(0);
        }
    }
}

fn line(event: &Event, zone: Zone) -> String {
    let time = zone.seconds(event.at_unix_ns);
    let called = called(&event.process, event.name.as_deref());
    let name = event.event.name();
    let more = match &event.event {
        EventKind::Started => format::command_line(event.shell.as_ref(), event.command.as_deref()),
        EventKind::FirstOutput | EventKind::Forgotten => String::new(),
        EventKind::TimedOut { which: TimeoutKind::Wall } => "time limit reached".into(),
        EventKind::TimedOut { which: TimeoutKind::Idle } => "no output for too long".into(),
        EventKind::Ended { ending } => format::ending(ending),
        EventKind::WorkspaceTouched { paths, .. } => format::one_line(&paths.join(" ")),
    };
    let tone = match &event.event {
        EventKind::Started => Tone::Good,
        EventKind::TimedOut { .. } => Tone::Failed,
        EventKind::Ended { ending } => Tone::of_ending(ending),
        EventKind::FirstOutput | EventKind::Forgotten | EventKind::WorkspaceTouched { .. } => {
            Tone::Dim
        }
    };
    let (time, gap) = (paint(Some(Tone::Dim), &time), if more.is_empty() { "" } else { "  " });
    let name = if more.is_empty() { name.to_owned() } else { format!("{name:12}") };
    let more = match &event.event {
        EventKind::Ended { .. } => paint(Some(tone), &more),
        _ => more,
    };
    // As wide as the end of an id; only a longer name moves what follows.
    format!("{time}  {called:8}  {}{gap}{more}", paint(Some(tone), &name))
}
