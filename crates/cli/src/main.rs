//! The `lastbyte` program.

mod attach;
mod autostart;
mod cap_args;
mod client_error;
mod colour;
mod commands;
mod config;
mod copy_output;
mod daemon;
mod env_file;
mod exit_code;
#[cfg(feature = "fleet")]
mod fleet;
mod foreground;
mod format;
mod guarded_server;
mod keep_args;
mod launch_args;
mod limit_args;
mod line_filter;
mod paths;
mod print;
mod process_args;
mod sandbox_args;
mod secret_args;
mod select_args;
mod server_args;
mod signals;
mod state_folder;
mod status_line;
mod stdio;
mod timestamp;
mod units;
mod usage;
mod wrap;

use std::process::ExitCode;

use lastbyte_keeper::Joined;

fn main() -> ExitCode {
    // Before there is anything to hide, and before the stand-in, which is a copy of this process.
    lastbyte_sys::core_dumps::forbid();
    let joined = match Joined::join_if_worker() {
        Ok(joined) => joined,
        Err(error) => {
            print::message(format_args!("cannot join the keeper of this server: {error}"));
            return ExitCode::from(exit_code::OWN_FAILURE);
        }
    };
    // A panic has printed its message; its own exit code could be taken for the command's.
    let code = std::panic::catch_unwind(|| commands::run(joined)).unwrap_or(exit_code::OWN_FAILURE);
    ExitCode::from(code)
}
