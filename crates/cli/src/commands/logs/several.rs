//! The output of several processes: whole lines, each behind what its process is called.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use lastbyte_client::Client;
use lastbyte_client::wire::Process;
use regex::bytes::Regex;

use super::Args;
use super::source::{Part, Source};
use crate::line_filter::LineFilter;
use crate::select_args::{called, say_refused};
use crate::stdio::{self, Reader};
use crate::{client_error, print};

/// Prints them one after the other, or as they come if they are followed; returns the exit code.
pub(super) async fn print(
    args: &Args,
    client: &Client,
    processes: &[Process],
) -> anyhow::Result<u8> {
    let calls = processes.iter().map(|process| called(&process.id, process.name.as_deref()));
    let width = calls.clone().map(str::len).max().unwrap_or(0);
    let logs = processes.iter().zip(calls).map(|(process, called)| Log {
        args,
        client,
        id: &process.id,
        called,
        prefix: if args.json { String::new() } else { format!("{called:width$} | ") },
        source: None,
        // With a pattern, only whole lines pass.
        filter: LineFilter::new(
            args.grep.clone().or_else(|| Regex::new("").ok()),
            args.head,
            args.named_line_text(),
        ),
        code: 0,
        over: false,
    });
    tokio::select! {
        code = print_all(args, logs) => code,
        () = stdio::stdout_reader_gone() => Ok(0),
    }
}

async fn print_all<'a>(args: &Args, logs: impl Iterator<Item = Log<'a>>) -> anyhow::Result<u8> {
    let mut code = 0;
    let mut waiting = logs;
    // Those that are read at the same time.
    let mut reading = FuturesUnordered::new();
    let at_once = if args.follow { usize::MAX } else { 1 };
    loop {
        while reading.len() < at_once
            && let Some(log) = waiting.next()
        {
            reading.push(log.read());
        }
        let Some((mut log, part)) = reading.next().await else { return Ok(code) };
        let text = match part {
            Ok(Some(part)) => log.show(&part),
            Ok(None) => log.finish(),
            Err(error) => match client_error::refusal(&error) {
                Some(_) => {
                    code = code.max(say_refused(log.called, error));
                    log.finish()
                }
                None => return Err(client_error::after_contact(error)),
            },
        };
        code = code.max(log.code);
        if stdio::write_stdout(&text)? == Reader::Gone {
            return Ok(code);
        }
        if !log.over && !log.filter.is_full() {
            reading.push(log.read());
        }
    }
}

/// One of the logs, and how far it was printed.
struct Log<'a> {
    args: &'a Args,
    client: &'a Client,
    id: &'a str,
    called: &'a str,
    prefix: String,
    /// `None` until it is read.
    source: Option<Source<'a>>,
    filter: LineFilter,
    /// The exit code for this log alone.
    code: u8,
    over: bool,
}

impl Log<'_> {
    async fn read(mut self) -> (Self, anyhow::Result<Option<Part>>) {
        let part = self.next().await;
        (self, part)
    }

    async fn next(&mut self) -> anyhow::Result<Option<Part>> {
        if self.source.is_none() {
            self.source = Some(Source::open(self.args, self.client, self.id).await?);
        }
        match &mut self.source {
            Some(source) => source.next().await,
            None => Ok(None),
        }
    }

    fn show(&mut self, part: &Part) -> Vec<u8> {
        if self.args.json {
            return part.bytes.to_vec();
        }
        let mut text = Vec::new();
        if let Some(dropped) = &part.gap {
            text = self.filter.gap();
            for range in dropped {
                print::message(format_args!("{}: {}", self.called, self.args.dropped(range)));
            }
            self.code = self.args.code_after_gap();
        }
        let prefix = format!("{}{}", self.prefix, part.stamp);
        text.extend(self.filter.pass(&part.bytes, &prefix));
        text
    }

    /// The rest, with the end of its last line.
    fn finish(&mut self) -> Vec<u8> {
        self.over = true;
        let ending = self.source.as_ref().and_then(Source::ending);
        if let Some(text) = self.args.text_if_lost(ending) {
            print::message(format_args!("{}: {text}", self.called));
        }
        self.filter.gap()
    }
}
