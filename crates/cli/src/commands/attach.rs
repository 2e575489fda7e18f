//! `lastbyte attach`: our terminal, or a pipe, attached to a process.

use lastbyte_client::wire::{AttachQuery, Process, Streams};
use lastbyte_client::{Attached, Client};
use rustix::stdio::stdout;
use rustix::termios::isatty;

use crate::attach::detach_key::{DetachKey, Keys};
use crate::attach::input::Pass;
use crate::attach::replay::{InitialOutput, last_screen};
use crate::attach::session::{Session, SessionEnd, SessionOptions};
use crate::exit_code::help::{self, Code};
use crate::process_args::{ProcessArgs, short_id};
use crate::signals::Interrupted;
use crate::{exit_code, format, print, stdio, units};

/// Attach to a process: see its output and type its input
///
/// For a process on a terminal (`start --tty`), your terminal is connected to it: every key goes to the
/// process, including Ctrl-C, and it follows the size of your window. The detach key leaves it running.
/// When you detach, the process ends or the connection is lost, your terminal is restored. Several
/// terminals can be attached to one process, which gets the size of the window that changed last.
///
/// On a terminal, output starts with the screen of the process, with colours (`lastbyte screen` prints it). In
/// a pipe or file, output starts at the first byte. Input is sent only to a process started with --stdin-open, --tty or -i.
///
/// Input from a pipe or file is passed on, and so is its end: as Ctrl-D for a process on a terminal. A
/// program that changes the mode of its terminal after that, like bash or python, may miss it: end it with
/// `exit` in the input, or start it without a terminal.
///
/// For a process without a terminal, lines are sent as you type them, and there is no detach key: Ctrl-C
/// (SIGINT) and Ctrl-\ (SIGQUIT) end `lastbyte attach` and leave the process running.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    #[command(flatten)]
    how: AttachArgs,
}

/// How to attach to a process.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct AttachArgs {
    /// Start at exactly this byte of the output; a negative number counts from the end. A terminal gets
    /// the bytes unchanged, including old queries and titles
    #[arg(long, value_name = "CURSOR", value_parser = units::parse_whole::<i64>, allow_hyphen_values = true)]
    pub(super) from: Option<i64>,

    /// Detach with these keys, like ctrl-] or ctrl-p,ctrl-q (the first with ctrl); `none` for no detach
    /// key. They do not reach the process; send them with `lastbyte write`
    #[arg(long, value_name = "KEYS", default_value_t)]
    pub(super) detach_key: DetachKey,

    /// Send neither input nor window size
    #[arg(long)]
    pub(super) read_only: bool,
}

fn exit_codes() -> String {
    help::list([
        (Code::Command, "the command's own exit code"),
        (Code::OK, "detached; the command keeps running"),
        help::INVALID_ARGS_OR_SETTINGS,
        help::COMMAND_TIMED_OUT,
        (
            Code::FAILURE,
            "no server is running, no such process, the server refused the request or went away",
        ),
        (Code::Signal, "signal N ended the command, or lastbyte while the command keeps running"),
    ])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    lastbyte_sys::own_signals::unblock_all();
    let (client, id) = args.process.find().await?;
    let process = client.show(&id).await?;
    args.how.attach(&client, &process).await
}

impl AttachArgs {
    pub(crate) async fn attach(&self, client: &Client, process: &Process) -> anyhow::Result<u8> {
        let begin = self.begin(client, process).await?;
        let query = AttachQuery { from: Some(begin.cursor), ..AttachQuery::default() };
        let attached = client.attach(&process.id, &query).await?;
        let wanted = self.wanted(process, &attached);
        // A process that has ended meanwhile takes no input either, which is not worth a word.
        let has_ended = match wanted.pass {
            Pass::On => process.phase.has_ending(),
            Pass::Nothing => client.show(&process.id).await?.phase.has_ending(),
        };
        if !has_ended {
            self.print_hint(process, &wanted);
        }
        let is_person = wanted.keys.is_some();
        let (mut session, mut outgoing) = Session::open(client, &process.id, wanted)?;
        session.begin(begin);
        let end = session.until_end(attached, &mut outgoing).await;
        // The detach key still works, but input is not sent any more.
        drop(outgoing);
        match end {
            Ok(SessionEnd::Ended(_)) | Err(_) => session.flush_terminal().await,
            Ok(SessionEnd::Detached | SessionEnd::Interrupted(_) | SessionEnd::ReaderGone) => {}
        }
        session.finish();
        report(&process.id, end?, is_person)
    }

    async fn begin(&self, client: &Client, process: &Process) -> anyhow::Result<InitialOutput> {
        Ok(match self.from {
            Some(cursor) => InitialOutput::at(cursor),
            None if isatty(stdout()) => last_screen(client, process).await?,
            None => InitialOutput::at(0),
        })
    }

    fn wanted(&self, process: &Process, attached: &Attached) -> SessionOptions {
        let on_terminal = process.streams == Streams::Tty;
        let keys = on_terminal && stdio::stdin_is_terminal();
        SessionOptions {
            keys: keys.then(|| Keys::new(self.detach_key.clone())),
            pass: match attached.accepted {
                Some(_) if !self.read_only => Pass::On,
                Some(_) | None => Pass::Nothing,
            },
            send_size: on_terminal && !self.read_only && (keys || isatty(stdout())),
        }
    }

    /// Prints a hint for people; nothing when standard input is a program.
    fn print_hint(&self, process: &Process, wanted: &SessionOptions) {
        let id = short_id(&process.id);
        let only = match wanted.pass {
            Pass::On => "",
            Pass::Nothing if self.read_only => ", read-only",
            Pass::Nothing => ", which takes no input",
        };
        let leave = match (&wanted.keys, stdio::stdin_is_terminal()) {
            (Some(_), _) if self.detach_key.is_none() => " until it ends".into(),
            (Some(_), _) => format!("; {} detaches", self.detach_key),
            (None, true) => "; Ctrl-C leaves it running".into(),
            (None, false) if only.is_empty() || self.read_only => return,
            (None, false) => String::new(),
        };
        print::message(format_args!("attached to {id}{only}{leave}"));
    }
}

/// Says how it ended, to a person; returns the exit code.
fn report(id: &str, end: SessionEnd, is_person: bool) -> anyhow::Result<u8> {
    match end {
        SessionEnd::Detached => {
            let id = short_id(id);
            print::message(format_args!(
                "detached; the process keeps running; return with `lastbyte attach {id}`"
            ));
            Ok(0)
        }
        SessionEnd::ReaderGone => Ok(0),
        SessionEnd::Interrupted(signal) => Err(Interrupted::while_running(signal).into()),
        SessionEnd::Ended(ending) => {
            // Of one that nobody saw end, the error tells.
            if is_person && !format::is_lost(&ending) {
                print::message(format_args!("the process has ended: {}", format::ending(&ending)));
            }
            exit_code::from_ending(&ending)
        }
    }
}
