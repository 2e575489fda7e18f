//! What the next worker needs of links and pages: a file with hashes, which goes with the server.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lastbyte_engine::Session;
use lastbyte_wire::HandOverEnd;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::usage::Usage;
use super::{HandOver, PageTimes};
use crate::listen::scope::{May, Scope};
use crate::to_wire::unix_ns;

/// All links, all tokens of pages, and how hand-overs have ended.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The port that was opened for pages.
    pub(super) port: Option<u16>,
    links: Vec<KeptLink>,
    pub(super) tokens: Vec<KeptToken>,
    /// By process, oldest first.
    ended: Vec<(String, HandOverEnd)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct KeptLink {
    pub(super) sha256: String,
    pub(super) scope: KeptScope,
    pub(super) hand_over: bool,
    /// The created token that it was made with.
    pub(super) parent: Option<String>,
    pub(super) expires_unix_ns: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct KeptToken {
    pub(super) id: String,
    pub(super) sha256: String,
    pub(super) scope: KeptScope,
    pub(super) hand_over: bool,
    pub(super) parent: Option<String>,
    /// After a take-over it counts as used just now.
    #[serde(skip)]
    pub(super) usage: Arc<Usage>,
}

/// A [`Scope`] in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KeptScope {
    All,
    ReadOnly,
    Session(String),
    Process { id: String, read_only: bool },
}

/// How many ended hand-overs are remembered.
const MOST_ENDED: usize = 100;

impl KeptToken {
    pub(super) fn new(
        (id, sha256): (String, String),
        scope: KeptScope,
        hand_over: bool,
        parent: Option<String>,
    ) -> Self {
        Self { id, sha256, scope, hand_over, parent, usage: Arc::default() }
    }

    /// When it has not been used for too long; `None` while it is in use.
    fn due(&self, times: &PageTimes) -> Option<Instant> {
        let most = if self.hand_over { times.left } else { times.unused };
        Some(self.usage.unused_since()? + most)
    }
}

impl From<&Scope> for KeptScope {
    fn from(scope: &Scope) -> Self {
        match scope {
            Scope::All => Self::All,
            Scope::ReadOnly => Self::ReadOnly,
            Scope::Session(Session(name)) => Self::Session(name.clone()),
            Scope::Process { id, may } => {
                Self::Process { id: id.to_string(), read_only: *may == May::Read }
            }
        }
    }
}

impl KeptScope {
    /// `None` for an id that is none.
    pub(super) fn to_scope(&self) -> Option<Scope> {
        Some(match self {
            Self::All => Scope::All,
            Self::ReadOnly => Scope::ReadOnly,
            Self::Session(name) => Scope::Session(Session(name.clone())),
            Self::Process { id, read_only } => {
                let may = if *read_only { May::Read } else { May::Write };
                Scope::Process { id: id.parse().ok()?, may }
            }
        })
    }

    fn process(&self) -> Option<&str> {
        match self {
            Self::Process { id, .. } => Some(id),
            Self::All | Self::ReadOnly | Self::Session(_) => None,
        }
    }
}

impl Kept {
    pub(crate) fn token(&self, id: &str) -> Option<&str> {
        self.tokens.iter().find(|token| token.id == id).map(|token| token.id.as_str())
    }

    pub(super) fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    pub(super) fn add_link(&mut self, link: KeptLink, most: usize) -> io::Result<()> {
        if self.links.len() + self.tokens.len() >= most {
            let message = format!("there are {most} links and pages already; let some expire");
            return Err(io::Error::other(message));
        }
        // From now on the last one is not how this one ended.
        if let Some(process) = link.scope.process().filter(|_| link.hand_over) {
            self.ended.retain(|(id, _)| id != process);
        }
        self.links.push(link);
        Ok(())
    }

    /// Whether there is a link with this hash that has not expired.
    pub(super) fn has_link(&self, sha256: &str, now_unix_ns: u64) -> bool {
        self.place(sha256, now_unix_ns).is_some()
    }

    /// The link with this hash, unless it has expired.
    pub(super) fn take_link(&mut self, sha256: &str, now_unix_ns: u64) -> Option<KeptLink> {
        self.place(sha256, now_unix_ns).map(|at| self.links.remove(at))
    }

    fn place(&self, sha256: &str, now_unix_ns: u64) -> Option<usize> {
        let is_it = |link: &KeptLink| link.sha256 == sha256 && now_unix_ns < link.expires_unix_ns;
        self.links.iter().position(is_it)
    }

    pub(crate) fn hand_over(&self, process: &str) -> HandOver {
        let is_it =
            |scope: &KeptScope, hand_over: bool| hand_over && scope.process() == Some(process);
        if self.links.iter().any(|link| is_it(&link.scope, link.hand_over))
            || self.tokens.iter().any(|token| is_it(&token.scope, token.hand_over))
        {
            return HandOver::Open;
        }
        HandOver::Over(self.ended.iter().find(|(id, _)| id == process).map(|(_, how)| *how))
    }

    /// Ends the token with this id, if there is one.
    pub(super) fn end_hand_over(&mut self, id: &str, how: HandOverEnd) {
        let ended: Vec<_> = self.tokens.extract_if(.., |token| token.id == id).collect();
        ended.iter().for_each(|token| self.note_end(&token.scope, how));
    }

    fn note_end(&mut self, scope: &KeptScope, how: HandOverEnd) {
        let Some(process) = scope.process() else { return };
        self.ended.retain(|(id, _)| id != process);
        self.ended.push((process.to_owned(), how));
        let excess = self.ended.len().saturating_sub(MOST_ENDED);
        self.ended.drain(..excess);
    }

    /// When the next link expires or the next token has not been used for too long.
    pub(super) fn next_due(
        &self,
        times: &PageTimes,
        now: Instant,
        wall: SystemTime,
    ) -> Option<Instant> {
        let left = |link: &KeptLink| link.expires_unix_ns.saturating_sub(unix_ns(wall));
        let links = self.links.iter().map(|link| now + Duration::from_nanos(left(link)));
        links.chain(self.tokens.iter().filter_map(|token| token.due(times))).min()
    }

    pub(super) fn remove_due(&mut self, times: &PageTimes, now: Instant, wall: SystemTime) {
        let is_over = |link: &mut KeptLink| link.expires_unix_ns <= unix_ns(wall);
        let links: Vec<_> = self.links.extract_if(.., is_over).collect();
        let is_left = |token: &mut KeptToken| token.due(times).is_some_and(|due| due <= now);
        let tokens: Vec<_> = self.tokens.extract_if(.., is_left).collect();
        for link in links.iter().filter(|link| link.hand_over) {
            self.note_end(&link.scope, HandOverEnd::Expired);
        }
        for token in tokens.iter().filter(|token| token.hand_over) {
            self.note_end(&token.scope, HandOverEnd::Left);
        }
    }
}

/// Where it is kept; nowhere if the server cannot be taken over.
#[derive(Debug)]
pub(super) struct KeptFile(Option<PathBuf>);

impl KeptFile {
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub(super) fn in_folder(state: &Path) -> Self {
        Self(Some(state.join("pages")))
    }

    /// Of the worker before. What cannot be read was not there: then pages need a new link.
    pub(super) fn read(&self) -> Kept {
        let text = self.0.as_ref().and_then(|path| fs::read(path).ok());
        text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        remove(path)
    }

    /// Whole under another name first. It need not survive a loss of power, which the server does not
    /// survive either.
    pub(super) fn write(&self, kept: &Kept) -> io::Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        let new = path.with_extension("new");
        remove(&new)?;
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(kept)?)?;
        fs::rename(&new, path)
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
