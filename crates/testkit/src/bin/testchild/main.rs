//! `testchild`: a program that misbehaves on request.
//!
//! It performs the actions in its arguments in order, separated by `then`:
//! `testchild print hello then exit 3`. After the last one it exits with 0. `perform` in `action.rs`
//! lists all actions; the files they are in describe them.
//!
//! TEXT may contain the escapes `\n`, `\r`, `\t`, `\0`, `\\` and `\xNN`. Signals are numbers. If an
//! action is invalid or fails, testchild prints the error on stderr and exits with 120. A write to a
//! closed pipe kills it with SIGPIPE, like most programs.
//!
//! A process that waits without a limit connects to the anchor of the test (see `hold.rs`), so no
//! helper outlives its test.
#![expect(clippy::exit, reason = "exiting on request is its purpose")]
#![expect(clippy::print_stderr, reason = "it reports errors on stderr")]

mod action;
mod hog;
mod hold;
mod input;
mod output;
mod report;
mod signals;
mod terminal;
mod tree;
mod words;

use std::ffi::OsString;

fn main() {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Err(error) = action::perform_all(&arguments) {
        eprintln!("testchild: {error}");
        std::process::exit(120);
    }
}
