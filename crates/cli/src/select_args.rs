//! Which processes a command is about: those with these ids, or all that meet some conditions; and
//! what came of it for each.

use lastbyte_client::wire::{ListQuery, ManyAnswer, Outcome, Phase, Process, Selection};
use lastbyte_client::{Client, ClientError};

use crate::process_args::short_id;
use crate::server_args::ServerArgs;
use crate::{client_error, exit_code, format, print, usage};

/// For the help of every command that takes several ids.
pub(crate) const IDS_HELP: &str =
    "Process ids or names, unique prefixes or suffixes of ids, or `last` for the newest process";

/// Set on each option, so that it does not apply to the options after them.
const HEADING: &str = "Selection";

/// Conditions that processes meet.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FilterArgs {
    /// Select processes of this session
    #[arg(long, help_heading = HEADING, value_name = "SESSION")]
    pub(crate) session: Option<String>,

    /// Select processes with this label; at most one
    #[arg(long, help_heading = HEADING, value_name = "NAME=VALUE", value_parser = parse_label)]
    label: Option<String>,

    /// Select processes with this name, ended ones too
    #[arg(long, help_heading = HEADING, value_name = "NAME")]
    name: Option<String>,

    /// Select processes that failed: by another exit code than 0, a signal or a timeout, or lost.
    /// Stopped ones did not fail
    #[arg(long, help_heading = HEADING, conflicts_with_all = ["running", "ended"])]
    failed: bool,

    /// Select processes that are running
    #[arg(long, help_heading = HEADING, conflicts_with = "ended")]
    running: bool,

    /// Select processes that have ended
    #[arg(long, help_heading = HEADING)]
    ended: bool,
}

/// Conditions, and the server that keeps the processes.
#[derive(Debug, clap::Args)]
pub(crate) struct SelectArgs {
    #[command(flatten)]
    filter: FilterArgs,

    /// Select all processes
    #[arg(long, help_heading = HEADING)]
    all: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// One process that was named, or several that were selected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Which {
    One(String),
    Several(Selection),
}

/// Processes that exist.
pub(crate) struct Found {
    pub(crate) processes: Vec<Process>,
    /// 0 unless some that were named do not exist, which has been said.
    pub(crate) code: u8,
}

fn parse_label(text: &str) -> Result<String, String> {
    if text.contains('=') { Ok(text.to_owned()) } else { Err("expected NAME=VALUE".into()) }
}

impl FilterArgs {
    pub(crate) fn query(&self) -> ListQuery {
        ListQuery {
            phase: match (self.running, self.ended) {
                (true, _) => Some(Phase::Running),
                (false, true) => Some(Phase::Ended),
                (false, false) => None,
            },
            session: self.session.clone(),
            label: self.label.clone(),
            name: self.name.clone(),
            failed: self.failed.then_some(true),
            ..ListQuery::default()
        }
    }

    /// As they were given.
    pub(crate) fn options(&self) -> Vec<String> {
        let values = [("session", &self.session), ("label", &self.label), ("name", &self.name)];
        let values = values.into_iter().filter_map(|(option, value)| {
            Some(format!("--{option} {}", usage::quoted(value.as_ref()?)))
        });
        let flags = [("failed", self.failed), ("running", self.running), ("ended", self.ended)];
        let flags = flags.into_iter().filter(|(_, given)| *given);
        values.chain(flags.map(|(option, _)| format!("--{option}"))).collect()
    }
}

impl SelectArgs {
    pub(crate) fn which(&self, ids: &[String]) -> Result<Which, usage::Error> {
        self.choose(ids, self.all || !self.filter.options().is_empty())
    }

    fn choose(&self, ids: &[String], has_conditions: bool) -> Result<Which, usage::Error> {
        // Every id begins with it.
        if ids.iter().any(String::is_empty) {
            return Err(usage::Error::EmptyId);
        }
        match (ids, has_conditions) {
            ([], false) => Err(usage::Error::NothingSelected),
            ([_, ..], true) => Err(usage::Error::IdsAndConditions),
            ([id], false) => Ok(Which::One(id.clone())),
            (ids, false) => {
                Ok(Which::Several(Selection { ids: Some(ids.to_vec()), ..Selection::default() }))
            }
            ([], true) => Ok(Which::Several(self.conditions())),
        }
    }

    /// For a command that does something for all of them, where `--all` with ids says just that.
    pub(crate) fn which_or_all(&self, ids: &[String]) -> Result<Which, usage::Error> {
        let is_selector = self.all && ids.is_empty();
        self.choose(ids, is_selector || !self.filter.options().is_empty())
    }

    fn conditions(&self) -> Selection {
        let ListQuery { phase, session, label, name, failed, .. } = self.filter.query();
        let all = self.all.then_some(true);
        Selection { ids: None, all, session, label, name, phase, failed }
    }

    /// The processes that exist, in the order given, else oldest first. Says which do not.
    pub(crate) async fn find(&self, client: &Client, ids: &[String]) -> anyhow::Result<Found> {
        let mut found = Found { processes: Vec::new(), code: 0 };
        if ids.is_empty() {
            found.processes = list_all(client, self.filter.query()).await?;
            found.processes.reverse();
        }
        for id in ids {
            match client.show(id).await {
                Ok(process) => found.processes.push(process),
                Err(error @ ClientError::Refused(_)) => {
                    found.code = say_refused(&format::one_line(id), error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }

    /// What was selected, as the object of a sentence.
    pub(crate) fn in_words(&self, ids: &[String]) -> String {
        match self.filter.options() {
            _ if !ids.is_empty() => format::one_line(&ids.join(", ")),
            options if options.is_empty() => "all processes".into(),
            options => format!("what matches {}", options.join(" ")),
        }
    }

    /// Says that no selected process is running; ended ones were left out.
    pub(crate) fn say_none_runs(&self) {
        match self.filter.options() {
            options if options.is_empty() => print::message("nothing is running"),
            options => print::message(format_args!(
                "nothing that matches {} is running",
                options.join(" ")
            )),
        }
    }

    /// Says that there is nothing to do.
    pub(crate) fn say_none(&self) {
        match self.filter.options() {
            options if options.is_empty() => print::message("there are no processes"),
            options => say_no_match(&options),
        }
    }
}

/// Says that no process meets the conditions of these options.
pub(crate) fn say_no_match(options: &[String]) {
    print::message(format_args!("no process matches {}", options.join(" ")));
}

impl Which {
    pub(crate) fn is_one(&self) -> bool {
        matches!(self, Self::One(_))
    }

    pub(crate) fn selection(&self) -> Selection {
        match self {
            Self::One(id) => Selection { ids: Some(vec![id.clone()]), ..Selection::default() },
            Self::Several(selection) => selection.clone(),
        }
    }
}

async fn list_all(client: &Client, mut query: ListQuery) -> Result<Vec<Process>, ClientError> {
    let mut all = Vec::new();
    query.limit = Some(ListQuery::MOST);
    loop {
        let page = client.list(&query).await?;
        all.extend(page.processes);
        match page.next {
            Some(next) => query.before = Some(next),
            None => return Ok(all),
        }
    }
}

/// What people call a process: its name, else the end of its id.
pub(crate) fn called<'a>(id: &'a str, name: Option<&'a str>) -> &'a str {
    name.unwrap_or_else(|| short_id(id))
}

fn outcome_called(outcome: &Outcome) -> &str {
    called(&outcome.id, outcome.name.as_deref())
}

/// A text for each of several, beside what each is called.
pub(crate) fn lines<'a>(each: impl Iterator<Item = (&'a str, String)>) -> String {
    let each: Vec<_> = each.collect();
    let width = each.iter().map(|(called, _)| called.len()).max().unwrap_or(0);
    each.iter().map(|(called, text)| format!("{called:width$}  {text}\n")).collect()
}

/// The only outcome of a request about one process.
pub(crate) fn only(answer: ManyAnswer) -> Result<Outcome, ClientError> {
    let outcome = answer.processes.into_iter().next();
    let outcome = outcome.ok_or_else(|| client_error::unexpected("no answer for the process"))?;
    match outcome.error {
        Some(error) => Err(ClientError::Refused(error)),
        None => Ok(outcome),
    }
}

/// Prints what came of it for each of several, in words or as JSON; returns the exit code.
pub(crate) fn print_each(
    answer: &ManyAnswer,
    json: bool,
    words: impl Fn(&Outcome) -> String,
) -> anyhow::Result<u8> {
    if json {
        answer.processes.iter().try_for_each(print::json_result)?;
    } else {
        let done = answer.processes.iter().filter(|outcome| outcome.error.is_none());
        print::result(lines(done.map(|outcome| (outcome_called(outcome), words(outcome)))))?;
    }
    let mut code = 0;
    for outcome in &answer.processes {
        if let Some(error) = outcome.error.clone() {
            code = say_refused(
                &format::one_line(outcome_called(outcome)),
                ClientError::Refused(error),
            );
        }
    }
    Ok(code)
}

/// Says why it could not be done for one of several; returns the exit code.
pub(crate) fn say_refused(called: &str, error: impl Into<anyhow::Error>) -> u8 {
    print::message(format_args!("{called}: {}", client_error::to_text(&error.into())));
    exit_code::OWN_FAILURE
}
