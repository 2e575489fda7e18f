//! `cargo xtask power-loss`: cuts the power of a virtual machine again and again while a server in it is
//! used, and checks what its state folder is worth after each boot.
//!
//! The power loss is a SIGKILL to QEMU: what the guest's kernel had not written is gone, and the disk
//! image is as it was. A client in the guest ([`guest`]) prints what it asks and what was acknowledged,
//! and after a boot what the server shows, checked against what the command ([`job`]) must have written.
//! Here both are compared, and counted: what was acknowledged and is gone ([`Ledger`]).
//!
//! Most boots have a kernel that writes dirty pages ten times sooner than it does by default, so that
//! a power loss falls between two writes of the same file more often. Every fifth has the defaults: its
//! figures are those of a real machine.
#![expect(clippy::print_stdout, reason = "prints figures")]

mod guest;
mod job;
mod ledger;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::random::Random;
use crate::vm::{self, Guest};
pub(crate) use guest::run as run_guest;
use ledger::Ledger;

const USAGE: &str = "usage: cargo xtask power-loss [--kills N] [--seed S]";
/// Begins the lines that the guest means for us.
const MARK: &str = "@";
/// How long a boot and its checks may take.
const PATIENCE: Duration = Duration::from_secs(240);
const SCRIPT: &str = "
echo $expire >/proc/sys/vm/dirty_expire_centisecs
echo $writeback >/proc/sys/vm/dirty_writeback_centisecs
mount -t ext4 -o commit=$commit /dev/vda /disk || echo '@ wrong the disk cannot be mounted'
exec xtask power-loss-guest
";

/// When the guest's kernel writes: ext4's commit in seconds, the two of dirty pages in centiseconds.
struct Pace {
    variables: &'static str,
    /// The longest time under load.
    load: Duration,
}

const DEFAULT: Pace =
    Pace { variables: "commit=5 expire=3000 writeback=500", load: Duration::from_secs(75) };
const QUICK: Pace =
    Pace { variables: "commit=1 expire=300 writeback=50", load: Duration::from_secs(20) };

/// Returns failure if anything is wrong.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let (kills, seed) = parse(arguments)?;
    if let Some(why) = vm::unavailable(&vm::X86_64) {
        println!("not run: xtask power-loss: {why}");
        return Ok(ExitCode::SUCCESS);
    }
    let folder = tempfile::Builder::new().prefix("lastbyte-power-loss-").tempdir_in("/var/tmp")?;
    let guest = Guest::new(folder.path(), SCRIPT)?;
    let disk = folder.path().join("disk");
    vm::make_disk(&disk, 512)?;
    let (begun, mut random) = (Instant::now(), Random::new(seed, 0));
    let mut ledger = Ledger::default();
    // After the last one it is only checked.
    for boot in 1..=kills + 1 {
        let pace = if boot.is_multiple_of(5) { &DEFAULT } else { &QUICK };
        let again = ledger.keys_to_repeat().join(",");
        let variables = format!("seed={seed} boot={boot} again={again} {}", pace.variables);
        let machine = guest.boot(Some(&disk), &variables)?;
        ledger.boots();
        // Some fall into the boot or its checks.
        let is_early = random.percent(15) && boot > 1;
        let after = pace.load.mul_f64(random.between(1, 1000) as f64 / 1000.0);
        let mut deadline = Instant::now() + if is_early { after } else { PATIENCE };
        while let Some((at, line)) = machine.line(deadline)? {
            if ledger.take(&line, at) && !is_early {
                deadline = Instant::now() + if boot > kills { Duration::ZERO } else { after };
            }
        }
        ensure!(is_early || ledger.is_checked(), "boot {boot}: not ready after {PATIENCE:?}");
        let (killed, lines) = machine.cut_power()?;
        lines.iter().for_each(|(at, line)| _ = ledger.take(line, *at));
        ledger.power_went(killed, pace.load == DEFAULT.load);
        println!("boot {boot}: {}", ledger.summary());
    }
    println!("power-loss: {kills} kills, seed {seed}, {:.0} s", begun.elapsed().as_secs_f64());
    ledger.report();
    Ok(if ledger.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn parse(arguments: &[String]) -> Result<(u64, u64)> {
    let (mut kills, mut seed) = (50, 1);
    for pair in arguments.chunks(2) {
        match pair {
            [option, value] if option == "--kills" => kills = value.parse().context(USAGE)?,
            [option, value] if option == "--seed" => seed = value.parse().context(USAGE)?,
            _ => bail!(USAGE),
        }
    }
    Ok((kills, seed))
}
