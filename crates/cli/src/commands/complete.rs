//! The hidden `lastbyte complete`: words that a running server knows, for the scripts of `lastbyte
//! completions`, and the parts of these scripts that call it.
//!
//! It starts no server and says nothing if none answers at once: it runs while somebody types.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Command;
use clap_complete::Shell;
use lastbyte_client::wire::{ListQuery, Process};
use tokio::time::timeout;

use crate::print;
use crate::process_args::short_id;
use crate::server_args::ServerArgs;

/// Print words that complete an argument, one per line
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    kind: Kind,

    /// What the words begin with
    #[arg(default_value = "", allow_hyphen_values = true)]
    prefix: String,

    #[command(flatten)]
    server: ServerArgs,
}

/// What is completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Ids,
    Names,
    Sessions,
    Labels,
}

/// Short enough for a person who presses Tab.
const PATIENCE: Duration = Duration::from_millis(500);

/// Returns the exit code, which is 0 in any case.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let listing = async {
        let client = args.server.client().await?.on_reconnect(|| {}).patience(Duration::ZERO);
        let query = ListQuery { limit: Some(ListQuery::MOST), ..ListQuery::default() };
        anyhow::Ok(client.list(&query).await?.processes)
    };
    if let Ok(Ok(processes)) = timeout(PATIENCE, listing).await {
        let words = words(args.kind, &args.prefix, &processes);
        print::result(words.iter().map(|word| format!("{word}\n")).collect::<String>())?;
    }
    Ok(0)
}

/// Newest first. Ids are shown by their last characters; if none of these starts with the prefix, whole
/// ids that do are returned.
fn words(kind: Kind, prefix: &str, processes: &[Process]) -> Vec<String> {
    let of_each = |process: &Process| -> Vec<String> {
        match kind {
            Kind::Ids => {
                let id = short_id(&process.id).to_owned();
                process.name.iter().cloned().chain([id]).collect()
            }
            Kind::Names => process.name.iter().cloned().collect(),
            Kind::Sessions => process.session.iter().cloned().collect(),
            Kind::Labels => {
                process.labels.iter().map(|(name, value)| format!("{name}={value}")).collect()
            }
        }
    };
    let found = distinct(processes.iter().flat_map(of_each), prefix);
    if found.is_empty() && kind == Kind::Ids {
        return distinct(processes.iter().map(|process| process.id.clone()), prefix);
    }
    found
}

fn distinct(words: impl Iterator<Item = String>, prefix: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let words = words.filter(|word| word.starts_with(prefix) && is_plain(word));
    words.filter(|word| seen.insert(word.clone())).collect()
}

/// A word that no shell takes for anything else. A process chooses its session and labels; it does
/// not get to run something in the shell of a person who presses Tab.
fn is_plain(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+/@%,=".contains(c);
    !word.is_empty() && !word.starts_with('-') && word.chars().all(plain)
}

/// The script of a shell, with calls of `lastbyte complete`.
pub(super) fn extend(shell: Shell, script: String, program: &Command) -> String {
    let takes_ids = |command: &&Command| {
        command.get_positionals().any(|arg| ["id", "ids", "words"].contains(&arg.get_id().as_str()))
    };
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
    let commands: Vec<&str> = commands.filter(takes_ids).map(Command::get_name).collect();
    match shell {
        Shell::Bash => bash(&script, &commands.join("|")),
        Shell::Zsh => zsh(&script),
        Shell::Fish => fish(&script, &commands.join(" ")),
        _ => script,
    }
}

/// Not by `compgen -W`, which expands the words.
fn bash(script: &str, commands: &str) -> String {
    let known = r#"
_lastbyte_known() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" kind="" word
    case "${COMP_WORDS[1]} ${prev}" in
        "start --name") ;;
        *" --name") kind=names ;;
        *" --session") kind=sessions ;;
        *" --label") kind=labels ;;
        *" --"[a-z]*) ;;
        *) case "${COMP_WORDS[1]}" in COMMANDS) kind=ids ;; esac ;;
    esac
    _lastbyte "$@"
    if [[ -z ${kind} || ${cur} == -* || ${COMP_CWORD} -lt 2 ]]; then return; fi
    local known=()
    while IFS= read -r word; do known+=("${word}"); done < <(command lastbyte complete "${kind}" "${cur}" 2>/dev/null)
    if [[ ${#known[@]} -gt 0 ]]; then COMPREPLY=("${known[@]}"); fi
}
"#;
    let (definitions, registration) = script.rsplit_once("\nif [[").unwrap_or((script, ""));
    let registration =
        registration.replace("complete -F _lastbyte ", "complete -F _lastbyte_known ");
    format!("{definitions}{}\nif [[{registration}", known.replace("COMMANDS", commands))
}

fn zsh(script: &str) -> String {
    let known = r#"
_lastbyte_known() {
    local -a known
    known=(${(f)"$(command lastbyte complete $1 $PREFIX 2>/dev/null)"})
    (( $#known )) && compadd -- $known
}
_lastbyte_ids() { _lastbyte_known ids }
_lastbyte_names() { _lastbyte_known names }
_lastbyte_sessions() { _lastbyte_known sessions }
_lastbyte_labels() { _lastbyte_known labels }
"#;
    let by = [
        ("--session=", "_lastbyte_sessions"),
        ("--label=[Select", "_lastbyte_labels"),
        ("--name=[Select", "_lastbyte_names"),
        (" -- Process id", "_lastbyte_ids"),
    ];
    let called = |line: &str| match by.iter().find(|(mark, _)| line.contains(mark)) {
        Some((_, function)) => line.replace(":_default'", &format!(":{function}'")) + "\n",
        None => format!("{line}\n"),
    };
    let script: String = script.lines().map(called).collect();
    // After the first line, `#compdef lastbyte`.
    match script.split_once('\n') {
        Some((first, rest)) => format!("{first}\n{known}{rest}"),
        None => script,
    }
}

fn fish(script: &str, commands: &str) -> String {
    let line = |commands: &str, what: &str, kind: &str| {
        let call = format!("(command lastbyte complete {kind} (commandline -ct) 2>/dev/null)");
        let condition = format!("__fish_lastbyte_using_subcommand {commands}");
        format!("complete -c lastbyte -n \"{condition}\" {what} -a '{call}'\n")
    };
    script.to_owned()
        + &line(commands, "-f", "ids")
        + &line(&format!("ps {commands}"), "-l name -x", "names")
        + &line(&format!("ps {commands}"), "-l label -x", "labels")
        + &line(&format!("start events ps {commands}"), "-l session -x", "sessions")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_a_shell_could_run_is_not_offered() {
        for word in ["web", "a=b/c", "job.1", "v2,x"] {
            assert!(is_plain(word), "{word}");
        }
        for word in ["", "-x", "a b", "$(x)", "`x`", "a;b", "a\nb", "~", "*", "é", "'", "a\\"] {
            assert!(!is_plain(word), "{word}");
        }
    }
}
