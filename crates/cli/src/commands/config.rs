//! `lastbyte config`: what is set, and where.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Args as _, Command, FromArgMatches};
use serde_json::{Value, json};

use crate::commands::serve;
use crate::config::{self, Choice, Given, Kind, Origin, Setting};
use crate::exit_code::help;
use crate::format::Cell;
use crate::server_args::ServerArgs;
use crate::{format, paths, print};

/// Show settings and where they come from
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes(), disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigCommand {
    Show(ShowArgs),
}

/// Print every setting and where it comes from
///
/// Flags override environment variables, variables override the file, and the file overrides the
/// defaults. Shows what a command or a server started now without flags would use; a running server
/// keeps the settings it was started with. Secrets are not printed.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
struct ShowArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[arg(long, value_name = "PATH", help = config::HELP)]
    config: Option<PathBuf>,
}

fn exit_codes() -> String {
    help::list([help::SUCCESS, help::INVALID_ARGS_OR_SETTINGS, help::NOT_WRITTEN])
}

/// Returns the exit code.
pub(crate) fn run(args: &Args) -> anyhow::Result<u8> {
    let ConfigCommand::Show(args) = &args.command;
    let choice = Choice::load(args.config.as_deref())?;
    check(&choice)?;
    print::answer(args.json, &in_json(&choice), |_| in_words(&choice))?;
    Ok(0)
}

/// Checks that `serve` and clients accept these settings.
pub(crate) fn check(choice: &Choice) -> anyhow::Result<()> {
    let parse = |command| {
        let parsed = config::filled(command, choice).try_get_matches_from(["lastbyte"]);
        parsed.map_err(|error| config::explain(&error, choice))
    };
    parse(ServerArgs::augment_args(Command::new("client")))?;
    let serve = parse(serve::Args::augment_args(Command::new("serve")))?;
    Ok(serve::Args::from_arg_matches(&serve)?.check([])?)
}

fn in_words(choice: &Choice) -> String {
    let file = choice.file.as_ref().map_or("none".into(), |file| file.to_string_lossy());
    let row = |setting: Setting| {
        let given = choice.get(setting.name);
        let from = given.map_or("default".into(), |given| given.origin.to_string());
        [setting.name.to_owned(), from, value_in_words(&value(setting, given, choice))]
    };
    let table = format::table(
        &["SETTING", "FROM", "VALUE"],
        &config::ALL.map(|setting| row(setting).map(Cell::from).to_vec()),
        None,
    );
    format!("file: {file}\n\n{table}")
}

fn value_in_words(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => format::one_line(text),
        Value::Array(items) if items.is_empty() => "-".into(),
        Value::Array(items) => items.iter().map(value_in_words).collect::<Vec<_>>().join(", "),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

fn in_json(choice: &Choice) -> Value {
    let settings = config::ALL.map(|setting| {
        let given = choice.get(setting.name);
        json!({
            "name": setting.name,
            "value": value(setting, given, choice),
            "from": origin_in_json(given),
        })
    });
    json!({ "file": choice.file.as_ref().map(text), "settings": settings })
}

fn origin_in_json(given: Option<&Given>) -> Value {
    match given.map(|given| &given.origin) {
        None => json!({ "source": "default" }),
        Some(Origin::Variable(name)) => json!({ "source": "variable", "name": name }),
        Some(Origin::File { path, line }) => {
            json!({ "source": "file", "path": text(path), "line": line })
        }
    }
}

fn value(setting: Setting, given: Option<&Given>, choice: &Choice) -> Value {
    let Some(given) = given else { return usual(setting, choice) };
    match setting.kind {
        Kind::Hidden => "(set, and not shown)".into(),
        Kind::List => given.values.iter().map(text).collect(),
        Kind::Switch => (given.values == ["true"]).into(),
        Kind::Text | Kind::Path | Kind::Number => given.values.first().map_or(Value::Null, text),
    }
}

/// What holds where nothing is set.
fn usual(setting: Setting, choice: &Choice) -> Value {
    let state = choice.get("state").and_then(|given| given.values.first()).map(Path::new);
    match (setting.name, setting.kind) {
        // Without a home there is none.
        ("state", _) => paths::state_dir(None).ok().as_ref().map(text).into(),
        ("socket", _) => paths::socket_path(state, None).ok().as_ref().map(text).into(),
        (_, Kind::List) => json!([]),
        (_, Kind::Switch) => false.into(),
        (name, Kind::Text | Kind::Hidden | Kind::Path | Kind::Number) => default_of(name),
    }
}

/// The default value in the help of `serve`.
fn default_of(name: &str) -> Value {
    let serve = serve::Args::augment_args(Command::new("serve"));
    let flag = serve.get_arguments().find(|flag| flag.get_long() == Some(name));
    let default = flag.and_then(|flag| flag.get_default_values().first());
    default.map_or(Value::Null, text)
}

/// As far as it is text: a name of a file need not be.
fn text(value: &impl AsRef<OsStr>) -> Value {
    value.as_ref().to_string_lossy().into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_flag_of_a_server_and_of_who_asks_it_is_a_setting() {
        let serve = serve::Args::augment_args(Command::new("serve"));
        let client = ServerArgs::augment_args(Command::new("client"));
        let flags = serve.get_arguments().chain(client.get_arguments());
        let mut flags: BTreeSet<&str> = flags.filter_map(|flag| flag.get_long()).collect();
        // `start` has labels, too, which are not those of a node.
        flags.remove("label");
        let settings = config::ALL.map(|setting| setting.name).into_iter().chain(["config"]);
        assert_eq!(flags, settings.collect());
    }
}
