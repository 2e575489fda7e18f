//! Settings as the defaults of flags.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use super::choice::Choice;
use super::error::ConfigError;

/// The same call again, with the settings of variables and file for the flags that it does not
/// have. A command without `--config` has no settings.
pub(crate) fn fill(program: Command, call: ArgMatches) -> Result<ArgMatches, ConfigError> {
    let Some((name, flags)) = call.subcommand() else { return Ok(call) };
    let Ok(config) = flags.try_get_one::<PathBuf>("config") else { return Ok(call) };
    let mut choice = Choice::load(config.map(PathBuf::as_path))?;
    if is_given(flags, "socket") || is_given(flags, "state") {
        choice = choice.without_server();
    }
    let program = program.mut_subcommand(name, |command| filled(command, &choice));
    program.try_get_matches().map_err(|error| explain(&error, &choice))
}

/// The command with settings as the defaults of its flags. A default is in conflict with nothing.
pub(crate) fn filled(command: Command, choice: &Choice) -> Command {
    choice.given.iter().fold(command, |command, given| {
        let id = given.setting.flag_id();
        let has_it = command.get_arguments().any(|flag| flag.get_id() == id.as_str());
        match has_it {
            true => command.mut_arg(id, |flag| flag.default_values(&given.values)),
            false => command,
        }
    })
}

fn is_given(flags: &ArgMatches, id: &str) -> bool {
    flags.try_contains_id(id).is_ok_and(|there| there)
        && flags.value_source(id) == Some(ValueSource::CommandLine)
}

/// In the words of clap, which speaks of a flag, with where the value really stands.
pub(crate) fn explain(error: &clap::Error, choice: &Choice) -> ConfigError {
    let text = error.render().to_string();
    let what = text.split("\n\nFor more").next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(what).trim_end().to_owned();
    let flag = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) => flag.as_str(),
        _ => "",
    };
    let name = flag.trim_start_matches("--").split([' ', '=']).next().unwrap_or_default();
    match choice.of(name) {
        Some(given) => ConfigError::Value { origin: given.origin.clone(), what },
        None => ConfigError::Call { what },
    }
}
