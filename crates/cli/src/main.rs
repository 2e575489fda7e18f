//! The `lastbyte` program.

mod attach;
mod autostart;
mod client_error;
mod commands;
mod config;
mod copy_output;
mod daemon;
mod exit_code;
mod foreground;
mod format;
mod launch_args;
mod line_filter;
mod paths;
mod print;
mod process_args;
mod sandbox_args;
mod server_args;
mod signals;
mod state_folder;
mod stdio;
mod timestamp;
mod units;
mod usage;

use std::process::ExitCode;

fn main() -> ExitCode {
    // A panic has printed its message; its own exit code could be taken for the command's.
    let code = std::panic::catch_unwind(commands::run).unwrap_or(exit_code::OWN_FAILURE);
    ExitCode::from(code)
}
