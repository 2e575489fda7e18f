//! `lastbyte logs`: the output of a process, byte for byte, or of several, line by line.

mod json_parts;
mod several;
mod since;
mod source;

use std::pin::pin;

use lastbyte_client::Client;
use lastbyte_client::wire::{Content, Ending, OutputQuery, Range, TimesQuery, View};
use regex::bytes::Regex;
use rustix::stdio::stdout;
use rustix::termios::isatty;

use self::source::Source;
use crate::exit_code::help::{self, Code};
use crate::line_filter::{LineFilter, LineText};
use crate::process_args::OutputArgs;
use crate::select_args::{Found, IDS_HELP, SelectArgs, Which};
use crate::stdio::{self, Reader};
use crate::{autostart, client_error, exit_code, format, print, timestamp, units};

/// Print the output of a process, byte for byte, or of several, each line behind its name
///
/// Without -f, prints what there is now. If bytes were dropped, standard error
/// says which. If the process has ended and others that it left running wrote more, standard error says
/// how much; --late shows it. If the reader of the output goes away, that is not an error.
///
/// --grep matches the text that a person sees: without escape sequences, and with `\r` and backspace applied.
/// A text that was overwritten, such as a step of a progress bar, can match too. If bytes were dropped, lines
/// that match may be missing, and the exit code is 4.
///
/// Filters apply in this order: --tail, --grep, --head. With any of them, --plain or --timestamps,
/// dropped bytes end a line, and what follows starts a new one.
///
/// The lines of several processes have the name of the process before them, or the end of its id. They
/// are printed one process after the other, with -f as they come. On a terminal they are printed as with
/// --plain, so that no `\r` or escape sequence overwrites a name; in a pipe no byte is changed.
///
/// Times are known to a tenth of a second: --since may start that much too early, and --timestamps may
/// show a time that is that much too early.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    #[arg(value_name = "ID", help = IDS_HELP)]
    ids: Vec<String>,

    /// Keep printing until the process has ended and all its output is printed; with --late, until
    /// nothing can write any more
    #[arg(short, long)]
    follow: bool,

    /// Start at this byte; a negative number counts from the end
    #[arg(long, value_name = "CURSOR", value_parser = units::parse_whole::<i64>, allow_hyphen_values = true, default_value_t = 0)]
    from: i64,

    /// Start with the last COUNT lines; with -f, continue from there
    #[arg(long, value_name = "COUNT", conflicts_with = "from", value_parser = units::parse_whole::<u64>, allow_hyphen_values = true)]
    tail: Option<u64>,

    /// Start with output from this long ago (5m), since this time of day (14:30) or from this time
    /// (2026-11-16T07:00, or 2026-11-16T07:00:00Z for UTC)
    #[arg(long, value_name = "TIME", value_parser = since::parse, allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["from", "tail"])]
    since: Option<u64>,

    /// Stop after COUNT lines
    #[arg(long, value_name = "COUNT", conflicts_with = "json", value_parser = units::parse_whole::<u64>, allow_hyphen_values = true)]
    head: Option<u64>,

    /// Print only lines that match this regular expression
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true, conflicts_with = "json")]
    grep: Option<Regex>,

    #[command(flatten)]
    text: TextArgs,

    /// Prefix each line with the time its first byte arrived; with --json, add `stamps`
    #[arg(short, long)]
    timestamps: bool,

    #[command(flatten)]
    zone: timestamp::Zone,

    #[command(flatten)]
    output: OutputArgs,

    /// Print each piece as a line of JSON, with everything the server says about it; `content` has `text`
    /// if it is UTF-8, else `base64`. Of several processes, `process` is the id
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    select: SelectArgs,
}

/// What is matched and printed.
#[derive(Debug, clap::Args)]
struct TextArgs {
    /// Match --grep with the bytes of the output, with its escape sequences
    #[arg(long, requires = "grep", conflicts_with = "plain")]
    raw: bool,

    /// Print the text that a person sees, a line when it is complete: without escape sequences, and with
    /// `\r` and backspace applied
    #[arg(long, conflicts_with = "json")]
    plain: bool,
}

fn exit_codes() -> String {
    let followed = (Code::Signal, "-f was ended by signal N: 130 for Ctrl-C");
    help::list([
        help::SUCCESS,
        help::INVALID_ARGS_OR_SETTINGS,
        help::NO_MATCH,
        (Code::INCOMPLETE, "--grep could not search bytes that were dropped"),
        help::NO_PROCESS,
        followed,
    ])
}

/// The server's limit of the text of lines in one answer.
const MAX_LINES_BYTES: u64 = 4 << 20;

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let which = args.select.which(&args.ids)?;
    let client = autostart::client_of_history(&args.select.server).await?;
    let Which::One(id) = which else {
        let Found { processes, code } = args.select.find(&client, &args.ids).await?;
        if processes.is_empty() && code == 0 {
            args.select.say_none();
            return Ok(exit_code::NONE_SELECTED);
        }
        return Ok(several::print(args, &client, &processes).await?.max(code));
    };
    let id = client.show(&id).await?.id;
    print_one(args, &client, &id).await
}

async fn print_one(args: &Args, client: &Client, id: &str) -> anyhow::Result<u8> {
    let mut source = Source::open(args, client, id).await?;
    let mut filter = LineFilter::new(args.grep.clone(), args.head, args.line_text());
    let mut code = 0;
    let mut reader_gone = pin!(stdio::stdout_reader_gone());
    loop {
        let part = tokio::select! {
            part = source.next() => part.map_err(client_error::after_contact)?,
            () = &mut reader_gone => return Ok(code),
        };
        let Some(part) = part else {
            stdio::write_stdout(&filter.finish())?;
            if let Some(text) = args.text_if_lost(source.ending()) {
                print::message(text);
            }
            if args.shows_to_the_end() && source.late_bytes() > 0 {
                print::message(format::left_out_late(source.late_bytes()));
            }
            return Ok(code);
        };
        if let Some(dropped) = part.gap {
            if args.is_by_line() {
                stdio::write_stdout(&filter.gap())?;
            }
            for range in &dropped {
                print::message(args.dropped(range));
            }
            code = args.code_after_gap();
        }
        let reader = if args.is_by_line() {
            stdio::write_stdout(&filter.pass(&part.bytes, &part.stamp))?
        } else {
            stdio::write_stdout(&part.bytes)?
        };
        if reader == Reader::Gone || filter.is_full() {
            return Ok(code);
        }
    }
}

impl Args {
    /// Whether output is printed by line, not byte for byte.
    fn is_by_line(&self) -> bool {
        let filtered = self.tail.is_some() || self.head.is_some() || self.grep.is_some();
        !self.json && (filtered || self.timestamps || self.text.plain)
    }

    /// Whether everything up to the end is shown, but nothing that was written after it.
    fn shows_to_the_end(&self) -> bool {
        let cut = self.head.is_some() || self.grep.is_some() || self.output.stream.is_some();
        !self.json && !self.output.late && !cut
    }

    fn line_text(&self) -> LineText {
        if self.text.plain {
            LineText::ShowPlain
        } else if self.grep.is_some() && !self.text.raw {
            LineText::MatchPlain
        } else {
            LineText::Bytes
        }
    }

    /// The same for lines behind a name, which a `\r` would overwrite on a terminal.
    fn named_line_text(&self) -> LineText {
        if isatty(stdout()) && !self.text.raw { LineText::ShowPlain } else { self.line_text() }
    }

    /// Says that bytes are missing.
    fn dropped(&self, range: &Range) -> String {
        let searched = if self.grep.is_some() { " and not searched" } else { "" };
        format!("{}{searched}", format::dropped(range))
    }

    /// The exit code if bytes are missing: lines that match may have been among them.
    fn code_after_gap(&self) -> u8 {
        if self.grep.is_some() { exit_code::INCOMPLETE } else { 0 }
    }

    /// Says that the output may not be all there was.
    fn text_if_lost(&self, ending: Option<&Ending>) -> Option<String> {
        let lost = ending.filter(|ending| !self.json && format::is_lost(ending))?;
        Some(format!("{}; there may have been more output", format::ending(lost)))
    }

    /// The cursor to begin at.
    async fn begin(&self, client: &Client, id: &str) -> anyhow::Result<i64> {
        let count = match (self.since, self.tail) {
            (Some(since), _) => return self.first_since(client, id, since).await,
            (None, None) => return Ok(self.from),
            (None, Some(count)) => count,
        };
        let query = OutputQuery {
            view: Some(View::Lines),
            // None is no number of lines to the server.
            last: Some(count.max(1)),
            max_bytes: Some(MAX_LINES_BYTES),
            stream: self.output.stream,
            late: Some(self.output.late),
            ..OutputQuery::default()
        };
        let view = client.output(id, &query).await?;
        let lines = match &view.content {
            Content::Lines { lines } if count > 0 => lines.as_slice(),
            _ => &[],
        };
        let Some(first) = lines.first() else { return Ok(i64::try_from(view.next)?) };
        let start = first.range.start;
        if (lines.len() as u64) < count && self.has_something_before(client, id, start).await? {
            let shown = lines.len();
            print::message(format_args!(
                "showing the last {shown} lines; more do not fit into 4 MiB"
            ));
        }
        Ok(i64::try_from(start)?)
    }

    /// The cursor of the first byte that may have come at this time or later.
    async fn first_since(&self, client: &Client, id: &str, unix_ns: u64) -> anyhow::Result<i64> {
        let query = TimesQuery {
            since_unix_ns: Some(unix_ns),
            late: Some(self.output.late),
            max_stamps: Some(1),
            ..TimesQuery::default()
        };
        let from = client.times(id, &query).await?.from;
        since::warn_if_future(self);
        Ok(i64::try_from(from)?)
    }

    async fn has_something_before(
        &self,
        client: &Client,
        id: &str,
        cursor: u64,
    ) -> anyhow::Result<bool> {
        let first = OutputQuery {
            from: Some(0),
            max_bytes: Some(1),
            stream: self.output.stream,
            ..OutputQuery::default()
        };
        let first = client.raw(id, &first).await?;
        Ok(!first.bytes.is_empty() && first.next <= cursor)
    }
}
