//! `lastbyte open`: a link to the page of the server.

mod redirect;

use std::env;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lastbyte_client::wire::CreateLinkRequest;
use lastbyte_sys::spawn::start_daemon;
use rustix::stdio::stdout;
use rustix::termios::isatty;

use crate::exit_code::help;
use crate::process_args::ID_HELP;
use crate::server_args::ServerArgs;
use crate::{autostart, print, units, usage};

/// Where there is one of these, xdg-open probably starts it.
const SNAPS: [&str; 2] = ["/snap/bin/firefox", "/snap/bin/chromium"];

const NO_BROWSER: &str =
    "no browser was started: open the link on this machine, or forward its port with `ssh -L`";

/// Open the server's page in a browser
///
/// Prints a link that works once, and opens it if standard output is a terminal and this machine has a
/// browser: $BROWSER, or else xdg-open on a display. Other users can see the arguments of a program, so xdg-open
/// gets the link in a file that only you can read. $BROWSER may open it on another machine, and a browser that
/// is a snap reads no such file: they get the link itself. The page sees what this client sees, or with ID that
/// process alone.
///
/// With `--once` it hands the keyboard of the process to a person, for example to type a password. `lastbyte
/// wait ID --hand-over` then waits until the person is done.
///
/// A server without a port opens one on the loopback interface until the last page is gone.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    #[arg(value_name = "ID", help = ID_HELP)]
    id: Option<String>,

    /// Hand the keyboard of the process to a person: the page ends when the person is done
    #[arg(long, requires = "id")]
    once: bool,

    /// Let the link expire after this time
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = units::parse_duration)]
    expires: Duration,

    /// Only print the link
    #[arg(long)]
    print: bool,

    /// Print the server's answer as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

fn exit_codes() -> String {
    help::list([help::SUCCESS, help::INVALID_ARGS_OR_SETTINGS, help::NO_SERVER])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    if args.id.as_ref().is_some_and(String::is_empty) {
        return Err(usage::Error::EmptyId.into());
    }
    let request = CreateLinkRequest {
        process: args.id.clone(),
        once: args.once.then_some(true),
        expires_in_ms: Some(units::ms(args.expires)),
    };
    let client = autostart::client_of_history(&args.server).await?;
    let answer = client.create_link(&request).await?;
    print::answer(args.json, &answer, |answer| format!("{}\n", answer.url))?;
    let wants_browser = !args.print && !args.json && isatty(stdout());
    if wants_browser && Browser::find().and_then(|browser| browser.open(&answer.url)).is_none() {
        print::message(NO_BROWSER);
    }
    Ok(0)
}

/// The program that opens a link.
struct Browser {
    program: PathBuf,
    reads_our_files: bool,
}

impl Browser {
    /// If there is one that a person sees.
    fn find() -> Option<Self> {
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let own = env::var_os("BROWSER").filter(|own| !own.is_empty());
        let has_display = is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
        let reads_our_files = own.is_none() && !SNAPS.iter().any(|snap| Path::new(snap).exists());
        let program = own.or_else(|| has_display.then(|| OsString::from("xdg-open")))?;
        // A list of several, or one with arguments, is for xdg-open to understand.
        let is_file = |path: &PathBuf| path.is_file();
        let program = if program.as_bytes().contains(&b'/') {
            Some(PathBuf::from(program)).filter(is_file)
        } else {
            let path = env::var_os("PATH")?;
            env::split_paths(&path).map(|folder| folder.join(&program)).find(is_file)
        };
        Some(Self { program: program?, reads_our_files })
    }

    fn open(self, link: &str) -> Option<()> {
        let address =
            if self.reads_our_files { redirect::write(link).ok()? } else { link.to_owned() };
        let program = CString::new(self.program.into_os_string().into_vec()).ok()?;
        let argv = vec![program.clone(), CString::new(address).ok()?];
        let env = env::vars_os().filter_map(|(name, value)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
        });
        let quiet = File::options().write(true).open("/dev/null").ok()?;
        start_daemon(program, argv, env.collect(), quiet).ok().map(drop)
    }
}
