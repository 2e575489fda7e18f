//! Splits arguments into actions and performs them.

use std::ffi::OsString;
use std::io;

use crate::tree::Shape;
use crate::words::Words;
use crate::{hog, hold, input, output, report, signals, terminal, tree};

/// Performs the actions in `arguments` in order.
pub(crate) fn perform_all(arguments: &[OsString]) -> io::Result<()> {
    for action in split(arguments) {
        perform(action).map_err(|error| {
            let name = action.first().map(|name| name.to_string_lossy()).unwrap_or_default();
            io::Error::new(error.kind(), format!("{name}: {error}"))
        })?;
    }
    Ok(())
}

/// Performs one action, given as its name and arguments.
pub(crate) fn perform(action: &[OsString]) -> io::Result<()> {
    let (name, words) = Words::from_action(action)?;
    match name {
        "print" => output::print(&output::OUT, words),
        "eprint" => output::print(&output::ERR, words),
        "write-bytes" => output::write_bytes(words),
        "pattern-from" => output::pattern_from(words),
        "flood" => output::flood(words),
        "alternate" => output::alternate(words),
        "packets" => output::packets(words),
        "abort-mid-write" => output::abort_mid_write(words),
        "close-stdout" => output::close_stdout(words),
        "close-stderr" => output::close_stderr(words),
        "touch" => output::touch(words),
        "append" => output::append(words),

        "await-eof" => input::await_eof(words),
        "cat" => input::cat(words),
        "read-exactly" => input::read_exactly(words),
        "poll-stdin" => input::poll_stdin(words),
        "epoll-stdin" => input::epoll_stdin(words),
        "epoll-stdin-twice" => input::epoll_stdin_twice(words),
        "poll-stdin-and-listen" => input::poll_stdin_and_listen(words),
        "read-in-thread" => input::read_in_thread(words),
        "close-stdin" => input::close_stdin(words),

        "hold" => hold::hold(words),
        "join" => hold::join(words),
        "chatter" => hold::chatter(words),
        "sleep-ms" => hold::sleep_ms(words),
        "exit" => hold::exit(words),

        "eat-memory" => hog::eat_memory(words),
        "spin" => hog::spin(words),
        "open-files" => hog::open_files(words),
        "grow-file" => hog::grow_file(words),

        "ignore" => signals::ignore(words),
        "trap" => signals::trap(words),
        "kill-self" => signals::kill_self(words),
        "stop-self" => signals::stop_self(words),

        "report" => report::report(words),
        "print-env" => report::print_env(words),
        "print-cwd" => report::print_cwd(words),
        "is-tty" => terminal::is_tty(words),
        "winsize" => terminal::winsize(words),
        "print-winsize-on-winch" => terminal::print_winsize_on_winch(words),

        "hide-typing" => terminal::hide_typing(words),
        "raw-terminal" => terminal::raw_terminal(words),
        "read-terminal" => terminal::read_terminal(words),
        "be-unreadable" => terminal::be_unreadable(words),

        "listen" => hold::listen(words),

        "background" => tree::background(Shape::Plain, words),
        "setsid-background" => tree::background(Shape::Setsid, words),
        "double-fork-background" => tree::background(Shape::Double, words),
        "tree" => tree::tree(words),
        "stubborn-tree" => tree::stubborn_tree(words),
        "fork-bomb" => tree::fork_bomb(words),
        "beget" => tree::beget(words),
        "setsid" => tree::setsid(words),
        "answer" => tree::answer(words),

        "leave-tail" => tree::leave_tail(words),
        "leave-silent-holder" => tree::leave_silent_holder(words),
        "leave-chatty-holder" => tree::leave_chatty_holder(words),

        _ => Err(io::Error::other("no such action")),
    }
}

/// Splits `arguments` at each `then`, except within nested actions, which end with `end`.
fn split(arguments: &[OsString]) -> Vec<&[OsString]> {
    let mut actions = Vec::new();
    let mut depth = 0;
    let mut begin = 0;
    let mut name_expected = true;
    for (index, word) in arguments.iter().enumerate() {
        let was_next = std::mem::replace(&mut name_expected, false);
        match word.to_str() {
            Some("then") => {
                if depth == 0 {
                    actions.push(&arguments[begin..index]);
                    begin = index + 1;
                }
                name_expected = true;
            }
            Some("end") => depth -= 1,
            Some(name) if was_next && tree::has_nested_actions(name) => {
                depth += 1;
                name_expected = true;
            }
            _ => {}
        }
    }
    if begin < arguments.len() {
        actions.push(&arguments[begin..]);
    }
    actions
}

#[cfg(test)]
mod tests {
    use super::split;

    fn check(line: &str, want: &[&str]) {
        let words: Vec<_> = line.split_whitespace().map(Into::into).collect();
        let actions: Vec<String> =
            split(&words).iter().map(|a| a.join(" ".as_ref()).into_string().unwrap()).collect();
        assert_eq!(actions, want);
    }

    #[test]
    fn then_separates_actions() {
        check("", &[]);
        check("print hello", &["print hello"]);
        check("print hello then exit 3", &["print hello", "exit 3"]);
    }

    #[test]
    fn nested_actions_stay_together() {
        check(
            "background print a then setsid-background hold end then hold end then exit 0",
            &["background print a then setsid-background hold end then hold end", "exit 0"],
        );
    }

    #[test]
    fn an_action_name_used_as_argument_is_an_argument() {
        check("print background then exit 0", &["print background", "exit 0"]);
    }
}
