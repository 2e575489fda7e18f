//! `lastbyte doctor`: what this machine offers and what lastbyte makes of it.

mod checks;
mod server;
mod storage;

use std::fmt;
use std::path::{Path, PathBuf};

use lastbyte_engine::set_aside_folders;
use lastbyte_server::to_wire;
use serde::Serialize;

use self::storage::Storage;
use crate::colour::{Tone, paint};
use crate::exit_code::help::{self, Code};
use crate::state_folder::StateFolder;
use crate::{config, exit_code, format, keep_args, paths, print, wrap};

/// Check what this machine supports, how lastbyte uses it and what it takes on disk
///
/// Everything is checked by trying it, as lastbyte does when it runs a command. The exit code is 0 if
/// commands can run here and 1 if something they need is missing.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Look at the server that keeps its state in this directory
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    #[arg(long, value_name = "PATH", help = config::HELP)]
    config: Option<PathBuf>,
}

fn exit_codes() -> String {
    help::list([
        (Code::OK, "commands can run here"),
        (Code::NOT_MET, "something they need is missing"),
        help::INVALID_ARGS_OR_SETTINGS,
        (Code::FAILURE, "lastbyte failed: cannot create its state directory, cannot write output"),
    ])
}

/// Returns the exit code.
pub(crate) fn run(args: &Args) -> anyhow::Result<u8> {
    let state = paths::state_dir(args.state.as_deref()).ok();
    let server = server::Report::ask(state.as_deref());
    // Before there is a folder of our own in it.
    let storage = args.storage(state.as_deref(), server.as_ref())?;
    let folder = StateFolder::create()?;
    let diagnosis =
        Diagnosis { server, storage, ..Diagnosis::run(folder.path(), state.as_deref()) };
    if args.json {
        print::result(format!("{}\n", serde_json::to_string_pretty(&diagnosis)?))?
    } else {
        print::result(diagnosis.to_string())?
    }
    Ok(if diagnosis.can_run() { 0 } else { exit_code::NOT_MET })
}

impl Args {
    /// `None` if there is no state directory yet, or if it cannot be read.
    fn storage(
        &self,
        state: Option<&Path>,
        server: Option<&server::Report>,
    ) -> anyhow::Result<Option<Storage>> {
        let Some(state) = state.filter(|state| state.is_dir()) else { return Ok(None) };
        let retention = match server.and_then(|server| server.retention) {
            Some(retention) => retention,
            None => to_wire::retention(&keep_args::from_settings(self.config.as_deref())?),
        };
        let processes = server.map(|server| server.processes);
        let storage = Storage::look(state, processes, retention).inspect_err(|error| {
            print::message(format_args!(
                "cannot read state directory {}: {error}",
                state.display()
            ));
        });
        Ok(storage.ok())
    }
}

/// All that was found.
#[derive(Debug, Serialize)]
struct Diagnosis {
    kernel: String,
    findings: Vec<Finding>,
    /// How the whole tree of a command is reached when it is stopped.
    stops_by: &'static str,
    /// How policies are enforced; absent where none can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandboxes_by: Option<&'static str>,
    /// Folders with output that the server found and its journal does not name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set_aside: Vec<PathBuf>,
    /// How many commands can run at once, if each is one process; absent where nothing bounds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    most_processes: Option<u64>,
    /// The server of this user; absent if none answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<server::Report>,
    /// What is on disk; absent if there is no state directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    storage: Option<Storage>,
}

/// One thing, whether it is there, and what that means.
#[derive(Debug, Serialize)]
struct Finding {
    name: &'static str,
    verdict: Verdict,
    meaning: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Yes,
    /// It is not there, and lastbyte does without.
    No,
    /// It is not there, and commands cannot be run without it.
    Needed,
}

impl Diagnosis {
    /// Tries everything; files are tried in this folder. The server's is the one of `state`.
    fn run(folder: &Path, state: Option<&Path>) -> Self {
        let leaf = lastbyte_sys::cgroup::probe();
        let tried = checks::try_all();
        Self {
            kernel: lastbyte_sys::probe::kernel(),
            stops_by: match leaf {
                Ok(_) => "leaf",
                Err(_) => "scan",
            },
            sandboxes_by: checks::enforced_by(&tried),
            // One that is not there has none.
            set_aside: state.and_then(|state| set_aside_folders(state).ok()).unwrap_or_default(),
            most_processes: checks::most_processes(),
            server: None,
            storage: None,
            findings: checks::all(folder, leaf, tried),
        }
    }

    fn can_run(&self) -> bool {
        self.findings.iter().all(|finding| finding.verdict != Verdict::Needed)
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut summary = String::new();
        self.summary(&mut summary)?;
        out.write_str(&wrap::to_terminal(&summary, 0))?;
        writeln!(out, "\nWhat was checked, on Linux {}:\n", self.kernel)?;
        for Finding { name, verdict, meaning } in &self.findings {
            let (verdict, tone) = match verdict {
                Verdict::Yes => ("yes", Tone::Good),
                Verdict::No => ("no", Tone::Pending),
                Verdict::Needed => ("MISSING", Tone::Failed),
            };
            let row = format!("  {verdict:7}  {name:16}  ");
            let row = wrap::to_terminal(&format!("{row}{meaning}"), row.len());
            let (_, rest) = row.split_at("  ".len() + verdict.len());
            writeln!(out, "  {}{rest}", paint(Some(tone), verdict))?;
        }
        Ok(())
    }
}

impl Diagnosis {
    /// What it all means.
    fn summary(&self, out: &mut impl fmt::Write) -> fmt::Result {
        if !self.can_run() {
            let text = "Commands cannot run here: see MISSING below.";
            return writeln!(out, "{}", paint(Some(Tone::Failed), text));
        }
        writeln!(out, "Commands can run here.")?;
        match self.most_processes {
            Some(most) => {
                let commands = format::count(most, "command", "commands");
                writeln!(out, "About {commands} can run at once.")?;
            }
            None => writeln!(out, "There is no limit on how many commands can run at once.")?,
        }
        let stop = match self.stops_by {
            "leaf" => "A stop ends a command and everything it started, and proves it.",
            _ => "A stop searches for everything a command started and ends what it finds.",
        };
        let sandbox = match self.sandboxes_by {
            Some(_) => "A sandbox applies to a command and everything it starts.",
            None => "Sandboxes are not available: commands that need one are refused.",
        };
        writeln!(out, "{stop}\n{sandbox}")?;
        for folder in &self.set_aside {
            let output = "Output that the server's journal does not name";
            writeln!(out, "{output} was set aside in {}.", folder.display())?;
        }
        self.server.iter().try_for_each(|server| write!(out, "{server}"))?;
        self.storage.iter().try_for_each(|storage| write!(out, "{storage}"))
    }
}
