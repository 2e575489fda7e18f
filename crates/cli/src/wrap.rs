//! Text for people, with lines that fit on their terminal.

use clap::Command;

use crate::stdio;

/// Longer lines are hard to read, however wide a terminal is.
const WIDEST: usize = 100;
/// Where the meaning of an exit code begins in its list.
const EXIT_CODE_COLUMN: usize = 9;

/// How long a line may be; `None` if standard output is not a terminal: a program may read it line by line.
fn width() -> Option<usize> {
    stdio::width_of_stdout().map(|width| width.min(WIDEST))
}

/// Breaks lines between words so that they fit on the terminal, if there is one. What is after a break is
/// indented by this many columns.
pub(crate) fn to_terminal(text: &str, indent: usize) -> String {
    width().map_or_else(|| text.to_owned(), |width| wrap(text, width, indent))
}

/// The same for the help of these commands, which people also read in a pager.
pub(crate) fn help(program: Command) -> Command {
    help_of_width(program, width().unwrap_or(WIDEST))
}

/// Their help as it is without a terminal.
pub(crate) fn help_for_pages(program: Command) -> Command {
    help_of_width(program, WIDEST)
}

fn help_of_width(command: Command, width: usize) -> Command {
    // clap would continue an exit code's meaning below its number.
    let codes = command.get_after_help().map(ToString::to_string);
    let command = command.term_width(width).mut_subcommands(|below| help_of_width(below, width));
    match codes {
        Some(codes) => command.after_help(wrap(&codes, width, EXIT_CODE_COLUMN)),
        None => command,
    }
}

fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut wrapped = String::new();
    for line in text.split_inclusive('\n') {
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            let len = word.trim_end().chars().count();
            if len > 0 && column + len > width && column > indent {
                wrapped.truncate(wrapped.trim_end_matches(' ').len());
                wrapped += &format!("\n{:indent$}", "");
                column = indent;
            }
            wrapped += word;
            column += word.chars().count();
        }
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, width: usize, indent: usize, want: &str) {
        assert_eq!(wrap(text, width, indent), want);
    }

    #[test]
    fn lines_are_broken_between_words() {
        check("one two three\nfour\n", 7, 0, "one two\nthree\nfour\n");
        check("one two", 7, 0, "one two");
        check("", 7, 0, "");
    }

    #[test]
    fn what_follows_a_break_is_indented_and_columns_are_kept() {
        check("  1    one two three", 12, 7, "  1    one\n       two\n       three");
        check("yes      a name", 15, 9, "yes      a name");
    }

    #[test]
    fn a_word_that_does_not_fit_is_not_broken() {
        check("unbreakable a", 4, 2, "unbreakable\n  a");
        check("  unbreakable", 4, 8, "  unbreakable");
    }
}
