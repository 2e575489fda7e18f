//! `lastbyte attach`: our terminal, or a pipe, attached to a process.

use lastbyte_client::wire::{AttachQuery, Phase, Process, Streams};
use lastbyte_client::{Attached, Client};
use rustix::stdio::stdout;
use rustix::termios::isatty;

use crate::attach::begin::{Begin, last_screen};
use crate::attach::conversation::{Conversation, Parting};
use crate::attach::detach_key::{DetachKey, Keys};
use crate::attach::input::Pass;
use crate::attach::opening::Wanted;
use crate::exit_code::help::{self, Code};
use crate::process_args::ProcessArgs;
use crate::signals::Interrupted;
use crate::{exit_code, in_words, own_streams, process_id, tell};

/// Attach to a process: see what it writes, and type what it reads
///
/// For a process on a terminal (`start --tty`) our own is passed through: every key goes to it,
/// Ctrl-C too, and it follows the size of our window. The detach key leaves it running; after
/// that, as after its end or the loss of the server, the terminal is as it was. Any number may be
/// attached to one process; the process has the size of the window that changed last.
///
/// On a terminal the output begins with the last screen of lines, as text and colours. A program
/// that has the whole screen, like an editor, draws it again instead. Into a pipe or a file it begins
/// with the first byte. Input is sent only to a process started with --stdin-open or -i.
///
/// From a pipe or a file standard input is passed on, and its end too: on a terminal as Ctrl-D. For
/// a process without a terminal lines are sent as they are typed, and Ctrl-C leaves it running.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_help = exit_codes())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    #[command(flatten)]
    how: How,
}

/// How to attach to a process that is known.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct How {
    /// Begin at exactly this byte of the output; a negative number counts from the end. A terminal is
    /// shown the bytes as they are, with every old question and title among them
    #[arg(long, value_name = "CURSOR", allow_hyphen_values = true)]
    from: Option<i64>,

    /// What detaches: keys like ctrl-], several with commas like ctrl-p,ctrl-q, the first with ctrl;
    /// `none` for no detach key. They do not reach the process; `lastbyte write` sends what cannot be
    /// typed
    #[arg(long, value_name = "KEYS", default_value_t)]
    detach_key: DetachKey,

    /// Send nothing: no key, no size
    #[arg(long)]
    read_only: bool,
}

fn exit_codes() -> String {
    help::list([
        (Code::OfCommand, "the command's own exit code, when it has ended"),
        (Code::Is(0), "detached; the command runs on"),
        help::UNUSABLE,
        help::OUT_OF_TIME,
        (
            Code::Is(exit_code::OWN_FAILURE),
            "no server is running, there is no such process, it cannot do this, or the server has gone",
        ),
        (
            Code::OfSignal,
            "the command was ended by signal N, or lastbyte was and the command runs on",
        ),
    ])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    lastbyte_sys::own_signals::unblock_all();
    let (client, id) = args.process.find().await?;
    let process = client.show(&id).await?;
    args.how.attach(&client, &process).await
}

impl How {
    /// For whoever has seen nothing of it.
    pub(crate) fn from_the_first_byte() -> Self {
        Self { from: Some(0), ..Self::default() }
    }

    pub(crate) async fn attach(&self, client: &Client, process: &Process) -> anyhow::Result<u8> {
        let begin = self.begin(client, &process.id).await?;
        let query = AttachQuery { from: Some(begin.cursor), ..AttachQuery::default() };
        let attached = client.attach(&process.id, &query).await?;
        let wanted = self.wanted(process, &attached);
        if process.phase != Phase::Ended {
            self.tell_how(process, &wanted);
        }
        let is_person = wanted.keys.is_some();
        let (mut conversation, mut outgoing) = Conversation::open(client, &process.id, wanted)?;
        conversation.begin(begin);
        let parting = conversation.until_parting(attached, &mut outgoing).await;
        // Keys are still heard, though nobody takes them.
        drop(outgoing);
        match parting {
            Ok(Parting::Ended(_)) | Err(_) => conversation.let_all_be_seen().await,
            Ok(Parting::Detached | Parting::Interrupted(_) | Parting::ReaderGone) => {}
        }
        conversation.finish();
        report(&process.id, parting?, is_person)
    }

    async fn begin(&self, client: &Client, id: &str) -> anyhow::Result<Begin> {
        Ok(match self.from {
            Some(cursor) => Begin::at(cursor),
            None if isatty(stdout()) => last_screen(client, id).await?,
            None => Begin::at(0),
        })
    }

    fn wanted(&self, process: &Process, attached: &Attached) -> Wanted {
        let on_terminal = process.streams == Streams::Tty;
        let keys = on_terminal && own_streams::stdin_is_a_terminal();
        Wanted {
            keys: keys.then(|| Keys::new(self.detach_key.clone())),
            pass: match attached.accepted() {
                Some(_) if !self.read_only => Pass::On,
                Some(_) | None => Pass::Nothing,
            },
            tell_size: on_terminal && !self.read_only && (keys || isatty(stdout())),
        }
    }

    /// One line of what a person can do; nothing to a program whose input is taken.
    fn tell_how(&self, process: &Process, wanted: &Wanted) {
        let id = process_id::short(&process.id);
        let only = match wanted.pass {
            Pass::On => "",
            Pass::Nothing if self.read_only => ", to look only",
            Pass::Nothing => ", which takes no input",
        };
        let leave = match (&wanted.keys, own_streams::stdin_is_a_terminal()) {
            (Some(_), _) if self.detach_key.is_none() => " until it ends".into(),
            (Some(_), _) => format!("; {} detaches", self.detach_key),
            (None, true) => "; Ctrl-C leaves it running".into(),
            (None, false) if only.is_empty() || self.read_only => return,
            (None, false) => String::new(),
        };
        tell::line(format_args!("attached to {id}{only}{leave}"));
    }
}

/// Says how it ended, to a person; returns the exit code.
fn report(id: &str, parting: Parting, is_person: bool) -> anyhow::Result<u8> {
    match parting {
        Parting::Detached => {
            let id = process_id::short(id);
            tell::line(format_args!("detached; it runs on, and `lastbyte attach {id}` comes back"));
            Ok(0)
        }
        Parting::ReaderGone => Ok(0),
        Parting::Interrupted(signal) => Err(Interrupted { signal, what: "attach" }.into()),
        Parting::Ended(ending) => {
            if is_person {
                tell::line(format_args!("the process has ended: {}", in_words::ending(&ending)));
            }
            exit_code::of_wire_ending(&ending)
        }
    }
}
