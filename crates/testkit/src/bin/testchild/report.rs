//! Actions that report what the process inherited.
//!
//! - `report`: one line of JSON: `pid`, `ppid`, `pgid`, `sid`, `not_default` (signals whose
//!   disposition is not the default), `blocked`, `fds`, `has_ctty`, `cwd`, `umask` (octal text),
//!   `env` (names only). The Rust runtime always ignores SIGPIPE, so `not_default` never has it.
//! - `print-env NAME`: its value, or `(unset)`, without a newline.
//! - `print-cwd`: the working directory, without a newline.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use lastbyte_testkit::{SignalSets, open_fds};
use rustix::process::{Pid, Signal};

use crate::output::OUT;
use crate::words::Words;

pub(crate) fn report(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    // Before this function opens any file.
    let fds = open_fds();
    let signals = SignalSets::from_status(&std::fs::read_to_string("/proc/self/status")?);
    let not_default = signals.ignored.iter().filter(|n| **n != Signal::PIPE.as_raw() as u32);
    let umask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(umask);
    let mut names: Vec<_> = std::env::vars_os().map(|(name, _)| quoted(name.as_bytes())).collect();
    names.sort_unstable();

    let [group, session] = group_and_session()?;

    let fields = [
        ("pid", std::process::id().to_string()),
        ("ppid", rustix::process::getppid().map_or(0, Pid::as_raw_pid).to_string()),
        ("pgid", group),
        ("sid", session),
        ("not_default", list(not_default)),
        ("blocked", list(&signals.blocked)),
        ("fds", list(&fds)),
        ("has_ctty", File::open("/dev/tty").is_ok().to_string()),
        ("cwd", quoted(std::env::current_dir()?.as_os_str().as_bytes())),
        ("umask", quoted(format!("{:03o}", umask.bits()).as_bytes())),
        ("env", list(&names)),
    ];
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    OUT.write(format!("{{{}}}\n", fields.join(",")).as_bytes())
}

/// Read from `/proc`, which shows 0 for a leader outside our pid namespace; rustix cannot return 0.
fn group_and_session() -> io::Result<[String; 2]> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let mut after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').skip(2);
    let mut next = || after_name.next().map(String::from).ok_or(io::ErrorKind::InvalidData);
    Ok([next()?, next()?])
}

pub(crate) fn print_env(mut words: Words<'_>) -> io::Result<()> {
    let name = words.word("NAME")?;
    words.done()?;
    match std::env::var_os(name) {
        Some(value) => OUT.write(value.as_bytes()),
        None => OUT.write(b"(unset)"),
    }
}

pub(crate) fn print_cwd(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    OUT.write(&std::env::current_dir()?.into_os_string().into_vec())
}

fn list(items: impl IntoIterator<Item = impl ToString>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(","))
}

/// A JSON string; invalid UTF-8 becomes U+FFFD.
fn quoted(bytes: &[u8]) -> String {
    let mut json = String::from('"');
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            '\0'..=' ' if character != ' ' => {
                _ = write!(json, "\\u{:04x}", u32::from(character)); // Writing to a String cannot fail.
            }
            _ => json.push(character),
        }
    }
    json.push('"');
    json
}
