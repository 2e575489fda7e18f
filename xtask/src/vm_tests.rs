//! `cargo xtask vm-tests [NAME]…`: checks that need a kernel of their own, each in a virtual machine
//! that is booted for it.
//!
//! The server runs in a cgroup of its own, as it does below systemd with `Delegate=yes`, as root or as
//! an ordinary user to whom the cgroup belongs. A client in the machine runs the check and prints
//! the result.
#![expect(clippy::print_stdout, reason = "prints results")]

mod limits;
mod oom;
mod packages;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use lastbyte_client::Client;
use tokio::time::{sleep, timeout};

use crate::vm::{self, Guest, Platform};

/// Each is run for each user.
const CHECKS: [&str; 3] = ["oom", "oom-at-birth", "limits"];
/// Another check, which has machines of its own, and which takes an optimised build.
const PACKAGES: &str = "packages";
const USERS: [(&str, u32); 2] = [("root", 0), ("an ordinary user", 1000)];

/// Begins the line that ends a check.
const MARK: &str = "@";
const PASSED: &str = "passed";
/// How long a boot and a check may take.
const PATIENCE: Duration = Duration::from_secs(180);
const SOCKET: &str = "/tmp/state/socket";
const SCRIPT: &str = "
mkdir /etc
echo server:x:$user:$user::/tmp:/bin/sh >/etc/passwd
own=/sys/fs/cgroup/service
echo '+memory +pids +cpu' >/sys/fs/cgroup/cgroup.subtree_control
mkdir $own
chown $user:$user $own $own/cgroup.procs $own/cgroup.subtree_control $own/cgroup.threads
as() { program=$1; shift; exec start-stop-daemon -S -c $user:$user -x $program -- \"$@\"; }
(echo 0 >$own/cgroup.procs; as /bin/lastbyte serve --state /tmp/state --log warn) &
as /bin/xtask vm-tests-guest
";

/// Returns failure if a check fails.
pub(crate) fn run(names: &[String]) -> Result<ExitCode> {
    let known = CHECKS.into_iter().chain([PACKAGES]);
    for name in names {
        let list = known.clone().collect::<Vec<_>>().join(", ");
        ensure!(known.clone().any(|check| check == name), "unknown check {name}; there are {list}");
    }
    let is_asked = |check: &&str| names.is_empty() || names.iter().any(|name| name == check);
    let folder = tempfile::Builder::new().prefix("lastbyte-vm-tests-").tempdir_in("/var/tmp")?;
    let mut passed = true;
    if CHECKS.iter().any(is_asked) && is_available(&vm::X86_64) {
        let guest = Guest::new(&folder.path().join("checks"), SCRIPT)?;
        for check in CHECKS.into_iter().filter(is_asked) {
            passed &= for_each_user(&guest, check)?;
        }
    }
    if is_asked(&PACKAGES) {
        for (platform, architecture) in packages::PROCESSORS {
            if is_available(platform) {
                let folder = folder.path().join(platform.name);
                let guest = packages::guest(platform, architecture, &folder)?;
                println!("{PACKAGES} on {}:", platform.name);
                passed &= for_each_user(&guest, PACKAGES)?;
            }
        }
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_available(platform: &Platform) -> bool {
    let why = vm::unavailable(platform);
    if let Some(why) = &why {
        println!("not run: xtask vm-tests on {}: {why}", platform.name);
    }
    why.is_none()
}

/// Returns whether the check passed for all.
fn for_each_user(guest: &Guest, check: &str) -> Result<bool> {
    let mut passed = true;
    for (name, user) in USERS {
        let begun = Instant::now();
        let said = boot(guest, check, user)?;
        println!("{check} as {name}: {said}, {:.0} s", begun.elapsed().as_secs_f64());
        passed &= said == PASSED;
    }
    Ok(passed)
}

fn boot(guest: &Guest, check: &str, user: u32) -> Result<String> {
    let machine = guest.boot(None, &format!("check={check} user={user}"))?;
    let deadline = Instant::now() + PATIENCE;
    while let Some((_, line)) = machine.line(deadline)? {
        match line.strip_prefix(MARK) {
            Some(said) => return Ok(said.trim().to_owned()),
            None if line.is_empty() => {}
            None => println!("    {line}"),
        }
    }
    Ok(format!("timed out after {PATIENCE:?}"))
}

/// The client in the machine. It is the first process, and never returns.
pub(crate) fn run_guest() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let said = match runtime.block_on(check()) {
        Ok(()) => PASSED.to_owned(),
        Err(error) => format!("FAILED: {error:#}"),
    };
    println!("{MARK} {said}");
    runtime.block_on(std::future::pending())
}

async fn check() -> Result<()> {
    // The kernel gives init what it was started with as variables.
    let check = std::env::var("check").context("no check")?;
    let client = Client::unix(SOCKET);
    let answered = async {
        while client.health().await.is_err() {
            #[expect(clippy::disallowed_methods, reason = "it asks until the server answers")]
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(60), answered).await.context("the server does not start")?;
    let before = worker(&client).await?;
    match check.as_str() {
        "oom" => oom::all_memory(&client).await?,
        "oom-at-birth" => oom::at_birth(&client).await?,
        "limits" => limits::by_cgroup(&client).await?,
        _ => bail!("unknown check"),
    }
    ensure!(worker(&client).await? == before, "the worker was replaced");
    Ok(())
}

async fn worker(client: &Client) -> Result<u32> {
    Ok(client.health().await?.keeper.context("no keeper")?.worker_pid)
}
