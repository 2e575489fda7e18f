//! The `lastbyte` program: runs commands and tells the truth about them.

mod attend;
mod commands;
mod control_socket;
mod deliver;
mod doctor;
mod duration;
mod exit_code;
mod feed;
mod own_streams;
mod report;
mod signals;
mod size;
mod state_folder;
mod summary;
mod tell;
mod terminal;
mod usage;

use std::process::ExitCode;

fn main() -> ExitCode {
    // A panic has told its story on stderr; its own exit code could be taken for the command's.
    let code = std::panic::catch_unwind(commands::main).unwrap_or(exit_code::OWN_FAILURE);
    ExitCode::from(code)
}
