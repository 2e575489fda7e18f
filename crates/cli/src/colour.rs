//! Colours by meaning, and the one place that decides whether there are any.
//!
//! `--color` decides. With `auto`, `NO_COLOR` turns colours off and `CLICOLOR_FORCE` turns them on
//! (see <https://no-color.org> and <https://bixense.com/clicolors>); otherwise a terminal has
//! colours, unless `TERM` is `dumb`. JSON never has any.

use std::env;
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use lastbyte_client::wire::{Cause, Ending, Phase, Status};
use rustix::stdio::stdout;
use rustix::termios::isatty;

/// When to print colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

/// What a colour means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Red: it failed.
    Failed,
    /// Green: it runs, or is as it should be.
    Good,
    /// Yellow: it is not over, or needs a look.
    Pending,
    /// What is less important.
    Dim,
}

/// `--color`.
pub(crate) fn option() -> clap::Arg {
    let help =
        "When to print colours; `auto` is on a terminal and obeys NO_COLOR and CLICOLOR_FORCE";
    let arg = clap::Arg::new("color").long("color").value_name("WHEN").help(help);
    arg.value_parser(clap::value_parser!(When))
}

/// The value of `--color`, if it was given.
pub(crate) fn given(call: &clap::ArgMatches) -> Option<When> {
    call.try_get_one::<When>("color").ok().flatten().copied()
}

static WHEN: OnceLock<When> = OnceLock::new();

/// Sets the value of `--color`; called once, before anything is printed.
pub(crate) fn choose(when: When) {
    // It is set once for each run of the program.
    _ = WHEN.set(when);
}

/// Whether output to this stream is coloured.
pub(crate) fn is_on(stream: BorrowedFd<'_>) -> bool {
    let variable = |name| env::var(name).ok();
    let when = WHEN.get().copied().unwrap_or(When::Auto);
    decide(when, variable, || isatty(stream))
}

fn decide(
    when: When,
    variable: impl Fn(&'static str) -> Option<String>,
    is_terminal: impl Fn() -> bool,
) -> bool {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    match when {
        When::Always => true,
        When::Never => false,
        When::Auto if is_set("NO_COLOR") => false,
        When::Auto
            if is_set("CLICOLOR_FORCE") && variable("CLICOLOR_FORCE") != Some("0".into()) =>
        {
            true
        }
        When::Auto => is_terminal() && variable("TERM").as_deref() != Some("dumb"),
    }
}

/// The text in the colour of its meaning, for standard output.
pub(crate) fn paint(tone: Option<Tone>, text: &str) -> String {
    match tone {
        Some(tone) if !text.is_empty() && is_on(stdout()) => coloured(tone, text),
        _ => text.to_owned(),
    }
}

fn coloured(tone: Tone, text: &str) -> String {
    let code = match tone {
        Tone::Failed => 31,
        Tone::Good => 32,
        Tone::Pending => 33,
        Tone::Dim => 2,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

impl Tone {
    pub(crate) fn of_phase(phase: Phase) -> Self {
        match phase {
            Phase::Running => Self::Good,
            Phase::Draining => Self::Pending,
            Phase::Ended => Self::Dim,
            Phase::Lost => Self::Failed,
        }
    }

    /// As `--failed` selects: not one that was stopped.
    pub(crate) fn of_ending(ending: &Ending) -> Self {
        let is_success = match (&ending.cause, &ending.status) {
            (Some(Cause::Stopped { .. }), _) => true,
            (Some(Cause::TimedOut { .. } | Cause::Limit { .. }), _) => false,
            (Some(Cause::Own) | None, status) => *status == Status::Exited { code: 0 },
        };
        if is_success { Self::Dim } else { Self::Failed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_wins_over_variables_and_they_win_over_the_terminal() {
        let check = |when, variables: &[(&str, &str)], on_pipe: bool, on_terminal: bool| {
            let value = |name: &str| {
                let found = variables.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let found = [false, true].map(|is_terminal| decide(when, value, || is_terminal));
            assert_eq!(found, [on_pipe, on_terminal], "{when:?} {variables:?}");
        };
        check(When::Auto, &[], false, true);
        check(When::Auto, &[("NO_COLOR", "")], false, true);
        check(When::Auto, &[("NO_COLOR", "0")], false, false);
        check(When::Auto, &[("CLICOLOR_FORCE", "1")], true, true);
        check(When::Auto, &[("CLICOLOR_FORCE", "0")], false, true);
        check(When::Auto, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false, false);
        check(When::Auto, &[("TERM", "dumb")], false, false);
        check(When::Always, &[("NO_COLOR", "1")], true, true);
        check(When::Never, &[("CLICOLOR_FORCE", "1")], false, false);
    }
}
