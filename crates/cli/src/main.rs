//! The `lastbyte` program: runs commands and tells the truth about them.

mod attach;
mod attend;
mod call;
mod client_error;
mod commands;
mod config;
mod daemon;
mod deliver;
mod doctor;
mod duration;
mod exit_code;
mod feed;
mod first_use;
mod in_words;
mod launch_args;
mod line_filter;
mod output_args;
mod own_streams;
mod places;
mod process_args;
mod process_id;
mod progress;
mod rfc3339;
mod sandbox_args;
mod screen;
mod server_args;
mod signals;
mod size;
mod state_folder;
mod summary;
mod table;
mod tell;
mod terminal;
mod terminal_args;
mod usage;

use std::process::ExitCode;

fn main() -> ExitCode {
    // A panic has told its story on stderr; its own exit code could be taken for the command's.
    let code = std::panic::catch_unwind(call::main).unwrap_or(exit_code::OWN_FAILURE);
    ExitCode::from(code)
}
