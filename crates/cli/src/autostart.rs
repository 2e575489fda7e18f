//! Starts the server on first use, and to read what an earlier one has left.
//!
//! A call that finds no server takes a lock, looks again, and only then starts one: of any number
//! of calls at the same time one starts it, and the others find it. The lock is held until the
//! server listens, so no call has to retry.

use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use anyhow::{Context, bail};
use lastbyte_client::{Address, Client};
use lastbyte_engine::journal_file;
use lastbyte_sys::spawn::{Daemon, start_daemon};
use rustix::fs::{FlockOperation, flock};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::time::timeout;

use crate::config::{self, Choice, Kind};
use crate::daemon::instance::ShuttingDown;
use crate::server_args::{ServerArgs, ServerPlace, is_nobody_there, is_not_running, telling};
use crate::state_folder::open_lock_of_server;
use crate::status_line::during;
use crate::{commands, print};

/// How long to wait for a server to listen. Only ends a hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// A larger log is set aside.
const LARGE_LOG: u64 = 1 << 20;

/// The variables that a server gets from the call that starts it. All later commands would inherit
/// any other.
const PASSED_ON: [&str; 8] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"];
const PASSED_ON_BY_PREFIX: [&str; 2] = ["LC_", "XDG_"];

/// Returns a client to read what the server knows. Starts a server if none is running, but not if the
/// socket was named, which may be that of a server elsewhere, nor if the state directory was named and
/// has no journal: it may be misspelt.
pub(crate) async fn client_of_history(server: &ServerArgs) -> anyhow::Result<Client> {
    let client = server.client().await?;
    let Address::Unix(socket) = client.address() else { return Ok(client) };
    let place = server.place()?.filter(|place| {
        let may_be_misspelt = server.names_state() && !journal_file(&place.state).exists();
        !server.names_socket() && !may_be_misspelt && nothing_listens(socket)
    });
    match place {
        Some(place) => ensure_server(&place, server).await,
        None => Ok(client),
    }
}

/// Returns a client once a server listens here. Blocks while another call starts one.
pub(crate) async fn ensure_server(
    place: &ServerPlace,
    server: &ServerArgs,
) -> anyhow::Result<Client> {
    let lock = open_lock_of_server(&place.state, "first-use.lock")?;
    rustix::io::retry_on_intr(|| flock(&lock, FlockOperation::LockExclusive))
        .context("cannot wait for another lastbyte that is starting the server")?;
    let client = match server.client().await {
        Ok(client) => client,
        Err(error) => {
            let last: ShuttingDown = error.downcast()?;
            during("waiting for the last server to stop", last.until_gone()).await?;
            server.client().await?
        }
    };
    match client.health().await {
        Err(error) if is_not_running(&error) => {
            let settings = Choice::load(server.config.as_deref())?;
            // The server would refuse them, too, but its exit code is not seen here.
            commands::config::check(&settings)?;
            start(place, &settings).await?;
            Ok(telling(Client::unix(&place.socket)))
        }
        Err(error) => Err(error.into()),
        Ok(_) => Ok(client),
    }
}

fn nothing_listens(socket: &Path) -> bool {
    UnixStream::connect(socket).is_err_and(|error| is_nobody_there(&error))
}

async fn start(place: &ServerPlace, settings: &Choice) -> anyhow::Result<()> {
    let path = place.state.join("daemon.log");
    put_aside_if_large(&path);
    let log = File::options().read(true).append(true).create(true).mode(0o600).open(&path);
    let mut log = log.with_context(|| format!("cannot open {}", path.display()))?;
    let before = log.seek(SeekFrom::End(0)).context("cannot write to the server's log")?;
    let Daemon { pid, stdout } = spawn(place, settings, &log)?;
    // One that is silent for too long has not started either.
    let listening = timeout(PATIENCE, until_listening(stdout));
    let listening = during("starting the server", listening).await.unwrap_or(Ok(false));
    if listening.context("cannot read from the server")? {
        let socket = place.socket.display();
        print::message(format_args!("started the server (pid {pid}), socket {socket}"));
        return Ok(());
    }
    let mut said = String::new();
    // Its last words are a courtesy; that it is gone is known without them.
    _ = log.seek(SeekFrom::Start(before)).and_then(|_| log.read_to_string(&mut said));
    match last_words(&said) {
        None => bail!("the server did not start and gave no reason; its log is {}", path.display()),
        Some(said) => bail!("the server did not start: {said}"),
    }
}

/// A log that has grown is kept beside the one that begins, in the place of the one before: there
/// are never more than two. A server that is shutting down keeps writing to the one that it has
/// open.
fn put_aside_if_large(log: &Path) {
    let is_large = fs::metadata(log).is_ok_and(|found| found.len() > LARGE_LOG);
    if is_large {
        // One that cannot be moved is no reason to have no server.
        _ = fs::rename(log, log.with_extension("log.1"));
    }
}

/// What it said to people, as against what it logged.
fn last_words(log: &str) -> Option<&str> {
    let at = log.find("lastbyte: ")?;
    Some(log[at..].trim_start_matches("lastbyte: ").trim_end())
}

fn spawn(place: &ServerPlace, settings: &Choice, log: &File) -> anyhow::Result<Daemon> {
    let program = std::env::current_exe().context("cannot find the lastbyte executable")?;
    let mut argv = vec![
        "lastbyte".into(),
        "serve".into(),
        "--state".into(),
        place.state.clone().into_os_string(),
        "--socket".into(),
        place.socket.clone().into_os_string(),
    ];
    if let Some(file) = &settings.file {
        argv.extend(["--config".into(), absolute(file)?.into_os_string()]);
    }
    if settings.get("log").is_none() {
        // Its log is a file that is cut by the next start alone: so requests are logged only on
        // demand. Not as a variable, which every command would inherit.
        argv.extend(["--log".into(), "warn".into()]);
    }
    let argv: Result<Vec<CString>, _> = argv.into_iter().map(c_string).collect();
    let env: Result<Vec<CString>, _> = environment().map(c_string).collect();
    let daemon = start_daemon(c_string(program.into_os_string())?, argv?, env?, log);
    daemon.context("cannot start the server")
}

fn environment() -> impl Iterator<Item = OsString> {
    let passed_on = std::env::vars_os().filter_map(|(name, value)| {
        let text = name.to_string_lossy();
        let known = PASSED_ON.contains(&&*text)
            || PASSED_ON_BY_PREFIX.iter().any(|prefix| text.starts_with(prefix));
        match config::from_variable(&name) {
            Some(setting) if setting.is_for_server() && !value.is_empty() => {
                // As it means the same in the root directory.
                let whole = absolute(&value).ok().filter(|_| setting.kind == Kind::Path);
                Some((name, whole.map_or(value, PathBuf::into_os_string)))
            }
            Some(_) => None,
            None => known.then_some((name, value)),
        }
    });
    passed_on.map(|(mut entry, value): (OsString, OsString)| {
        entry.push("=");
        entry.push(value);
        entry
    })
}

/// `false` when it is gone.
async fn until_listening(stdout: OwnedFd) -> io::Result<bool> {
    let mut lines = BufReader::new(pipe::Receiver::from_owned_fd(stdout)?).split(b'\n');
    while let Some(line) = lines.next_segment().await? {
        if line.starts_with(b"listening on unix:") {
            return Ok(true);
        }
    }
    Ok(false)
}

fn c_string(text: OsString) -> anyhow::Result<CString> {
    CString::new(text.into_vec()).context("a path or variable contains a NUL byte")
}
