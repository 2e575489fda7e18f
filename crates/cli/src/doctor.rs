//! What a machine offers, one finding for each thing lastbyte uses.

mod checks;
mod sandboxes;

use std::fmt;
use std::path::Path;

use serde::Serialize;

/// All that was found.
#[derive(Debug, Serialize)]
pub(crate) struct Diagnosis {
    kernel: String,
    findings: Vec<Finding>,
    /// How the whole tree of a command is reached when it is stopped.
    stops_by: &'static str,
    /// How policies are enforced; absent where none can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandboxes_by: Option<&'static str>,
    /// How many silent commands can run at once; absent where nothing bounds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    most_processes: Option<u64>,
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
    /// Tries everything; files are tried in this folder.
    pub(crate) fn of_this_machine(folder: &Path) -> Self {
        let leaf = lastbyte_sys::cgroup::probe();
        let tried = sandboxes::try_all();
        Self {
            kernel: lastbyte_sys::probe::kernel(),
            stops_by: match leaf {
                Ok(_) => "leaf",
                Err(_) => "scan",
            },
            sandboxes_by: sandboxes::enforced_by(&tried),
            most_processes: checks::most_processes(),
            findings: checks::all(folder, leaf, &tried),
        }
    }

    pub(crate) fn can_run(&self) -> bool {
        self.findings.iter().all(|finding| finding.verdict != Verdict::Needed)
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "Linux {}\n", self.kernel)?;
        for Finding { name, verdict, meaning } in &self.findings {
            let verdict = match verdict {
                Verdict::Yes => "yes",
                Verdict::No => "no",
                Verdict::Needed => "MISSING",
            };
            writeln!(out, "  {verdict:7}  {name:16}  {meaning}")?;
        }
        writeln!(out)?;
        if !self.can_run() {
            return writeln!(out, "Commands cannot be run here: see what is MISSING.");
        }
        match self.stops_by {
            "leaf" => writeln!(
                out,
                "A stop ends a command with all it has started, at once and for sure."
            )?,
            _ => writeln!(
                out,
                "A stop ends a command with all it has started, as far as it can be found."
            )?,
        }
        match self.sandboxes_by {
            Some(_) => writeln!(out, "A sandbox holds a command and all it has started.")?,
            None => writeln!(out, "A command that is to be sandboxed is refused.")?,
        }
        match self.most_processes {
            Some(most) => writeln!(out, "About {most} commands can run at once."),
            None => writeln!(out, "Nothing bounds how many commands can run at once."),
        }
    }
}
