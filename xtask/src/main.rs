//! Tasks of the workspace: `cargo xtask tidy`.
#![expect(clippy::print_stderr, reason = "a program for the terminal")]

mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let outcome = match task.as_deref() {
        Some("tidy") => tidy::run(),
        _ => {
            eprintln!("usage: cargo xtask tidy");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
