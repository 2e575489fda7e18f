//! Which process a command is about, and which part of its output. An id can be given whole, by its
//! beginning or its end, or as `last`.

use lastbyte_client::wire::{ListQuery, Stream};
use lastbyte_client::{Client, ClientError};

use crate::server_args::ServerArgs;
use crate::{format, usage};

/// How much of an id is shown. The end, since ids of the same minute begin alike.
const SHOWN: usize = 8;

/// For the help of every command that takes an id.
const ID_HELP: &str =
    "Process id, any unique prefix or suffix of it, or `last` for the newest process";

/// No process can be meant.
#[derive(Debug, thiserror::Error)]
enum FindError {
    #[error("there are no processes yet; start one with `lastbyte start`")]
    NoneYet,
    #[error("no process id starts or ends with {given:?}; `lastbyte ps` lists processes")]
    Unknown { given: String },
    #[error("{count} process ids start or end with {given:?}: {}{}; give more characters", ids.join(", "), and_more(*count, ids))]
    Several { given: String, count: usize, ids: Vec<String> },
}

fn and_more(count: usize, named: &[String]) -> String {
    match count - named.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    }
}

/// The length of a whole id.
const WHOLE: usize = 36;
/// How many ids an error names.
const NAMED: usize = 5;

/// The whole id of the process that is meant.
async fn find_id(client: &Client, given: &str) -> anyhow::Result<String> {
    match given {
        "last" => newest(client).await,
        // Whether it is there, the server says better.
        whole if whole.len() == WHOLE => Ok(whole.to_owned()),
        part => Ok(choose(part, all(client).await?)?),
    }
}

async fn newest(client: &Client) -> anyhow::Result<String> {
    let query = ListQuery { limit: Some(1), ..ListQuery::default() };
    let newest = client.list(&query).await?.processes.into_iter().next();
    Ok(newest.ok_or(FindError::NoneYet)?.id)
}

async fn all(client: &Client) -> Result<Vec<String>, ClientError> {
    let mut ids = Vec::new();
    let mut query = ListQuery { limit: Some(ListQuery::MOST), ..ListQuery::default() };
    loop {
        let page = client.list(&query).await?;
        ids.extend(page.processes.into_iter().map(|process| process.id));
        match page.next {
            Some(next) => query.before = Some(next),
            None => return Ok(ids),
        }
    }
}

fn choose(given: &str, mut ids: Vec<String>) -> Result<String, FindError> {
    ids.retain(|id| id.starts_with(given) || id.ends_with(given));
    match ids.len() {
        0 => Err(FindError::Unknown { given: given.to_owned() }),
        1 => Ok(ids.remove(0)),
        count => {
            ids.truncate(NAMED);
            Err(FindError::Several { given: given.to_owned(), count, ids })
        }
    }
}

/// The end of an id, which `find_id` takes.
pub(crate) fn short_id(id: &str) -> &str {
    id.get(id.len().saturating_sub(SHOWN)..).unwrap_or(id)
}

/// A process, and the server that keeps it.
#[derive(Debug, clap::Args)]
pub(crate) struct ProcessArgs {
    #[arg(help = ID_HELP)]
    id: String,

    #[command(flatten)]
    server: ServerArgs,
}

impl ProcessArgs {
    /// The server, and the whole id of the process that is meant.
    pub(crate) async fn find(&self) -> anyhow::Result<(Client, String)> {
        // Every id begins with it.
        if self.id.is_empty() {
            return Err(usage::Error::EmptyId.into());
        }
        let client = self.server.client().await?;
        let id = find_id(&client, &self.id).await?;
        Ok((client, id))
    }
}

/// A choice of what a process and its survivors have written.
#[derive(Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// Read only stdout or only stderr; without --split at the start, everything counts as stdout
    #[arg(long, value_parser = |text: &str| format::parse_word::<Stream>(text, "stdout or stderr"))]
    pub(crate) stream: Option<Stream>,

    /// Include what processes left running by it write after its end
    #[arg(long)]
    pub(crate) late: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> Vec<String> {
        ["0190-aaaa-1111", "0190-aaab-2222", "0191-bbbb-2122"].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_beginning_or_an_end_that_only_one_has_is_enough() {
        for (given, want) in
            [("0190-aaaa", 0), ("1111", 0), ("0191", 2), ("-2222", 1), ("0191-bbbb-2122", 2)]
        {
            assert_eq!(choose(given, ids()).unwrap(), ids()[want], "{given}");
        }
    }

    #[test]
    fn one_that_several_have_is_refused_with_their_names() {
        let error = choose("0190", ids()).unwrap_err().to_string();
        let want = "2 process ids start or end with \"0190\": \
                    0190-aaaa-1111, 0190-aaab-2222; give more characters";
        assert_eq!(error, want);
        let error = choose("9", ids()).unwrap_err();
        assert!(matches!(error, FindError::Unknown { .. }), "{error}");
    }
}
