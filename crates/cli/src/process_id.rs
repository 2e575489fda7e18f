//! Ids as people type them: whole, the beginning or the end of one, or `last`.

use lastbyte_client::{Client, ClientError, wire::ListQuery};

/// How much of an id is shown. The end, since ids of the same minute begin alike.
pub(crate) const SHOWN: usize = 8;

/// For the help of every command that takes an id.
pub(crate) const HELP: &str =
    "The id, a beginning or an end of it that no other has, or `last` for the newest process";

/// No process can be meant.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FindError {
    #[error("there is no process yet; `lastbyte start` starts one")]
    NoneYet,
    #[error("no process has an id that begins or ends with {given:?}; `lastbyte ps` lists them")]
    Unknown { given: String },
    #[error("{count} processes have an id that begins or ends with {given:?}: {}", ids.join(", "))]
    Several { given: String, count: usize, ids: Vec<String> },
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// The length of a whole id.
const WHOLE: usize = 36;
/// How many ids an error names.
const NAMED: usize = 5;
/// As many as one answer may have.
const PAGE: u64 = 1000;

/// The whole id of the process that is meant.
pub(crate) async fn find(client: &Client, given: &str) -> Result<String, FindError> {
    match given {
        "last" => newest(client).await,
        // Whether it is there, the server says better.
        whole if whole.len() == WHOLE => Ok(whole.to_owned()),
        part => choose(part, all(client).await?),
    }
}

async fn newest(client: &Client) -> Result<String, FindError> {
    let query = ListQuery { limit: Some(1), ..ListQuery::default() };
    let newest = client.list(&query).await?.processes.into_iter().next();
    newest.map(|process| process.id).ok_or(FindError::NoneYet)
}

async fn all(client: &Client) -> Result<Vec<String>, ClientError> {
    let mut ids = Vec::new();
    let mut query = ListQuery { limit: Some(PAGE), ..ListQuery::default() };
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

/// The end of an id, which `find` takes.
pub(crate) fn short(id: &str) -> &str {
    id.get(id.len().saturating_sub(SHOWN)..).unwrap_or(id)
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
        let want = "2 processes have an id that begins or ends with \"0190\": \
                    0190-aaaa-1111, 0190-aaab-2222";
        assert_eq!(error, want);
        let error = choose("9", ids()).unwrap_err();
        assert!(matches!(error, FindError::Unknown { .. }), "{error}");
    }
}
