//! `testchild`: a program that misbehaves on request.
//!
//! It performs the actions of its arguments in order; a lone `then` separates them:
//! `testchild print hello then exit 3`. After the last one it exits with 0. The actions stand in
//! the files of their kind, and `perform` in `action.rs` lists them all.
//!
//! TEXT knows the escapes `\n`, `\r`, `\t`, `\0`, `\\` and `\xNN`. Signals are numbers. A request
//! that makes no sense, or fails, is told on stderr and exits with 120; a write that nobody reads
//! kills with SIGPIPE, as it does most programs.
//!
//! Whoever waits without an end of its own holds on to the test's anchor (see `hold.rs`), so no
//! helper outlives its test.
#![expect(clippy::exit, reason = "exiting in the middle is what it is for")]
#![expect(clippy::print_stderr, reason = "a program with nothing but stderr to complain on")]

mod action;
mod bytes;
mod hold;
mod input;
mod leave;
mod network;
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
