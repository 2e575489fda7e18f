//! Whether a look at what runs takes longer the more has ended.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::daemon::Daemon;
use super::samples::{WARM_UP, in_turn};
use super::wire::{Connection, RUN_TRUE};

/// As many as a server keeps of those that ended a moment ago.
const ENDED: usize = 10_000;
const ROUNDS: usize = 500;
const LOOKS: [(&str, &str); 4] = [
    ("what runs", "/v1/processes?phase=running"),
    ("one session", "/v1/processes?session=one"),
    ("one name", "/v1/processes?name=web"),
    ("Coder: lookup by token", "/api/v0/processes/tokens/one"),
];

pub(super) fn run() -> Result<()> {
    println!("history: the same look, after 0 and after {ENDED} ended processes, in turn");
    let servers = [Daemon::start()?, Daemon::start()?];
    let new = &mut Connection::open(&servers[0].unix())?;
    let old = &mut Connection::open(&servers[1].unix())?;
    for _ in 0..ENDED {
        old.post("/v1/processes", RUN_TRUE)?;
    }
    for connection in [&mut *new, &mut *old] {
        connection
            .start(r#"{"command":["sleep","600"],"session":"one","name":"web","key":"one"}"#)?;
    }
    for (what, path) in LOOKS {
        let timed = |connection: &mut Connection| -> Result<Duration> {
            let begun = Instant::now();
            let answer = connection.get(path)?;
            let time = begun.elapsed();
            ensure!(answer.windows(4).any(|text| text == b"\"id\""), "nothing was found at {path}");
            Ok(time)
        };
        let [before, after] = in_turn(WARM_UP, ROUNDS, || Ok([timed(new)?, timed(old)?]))?;
        println!("  {:.2}: {what}: {before}; {after}", after.ratio_to(&before));
    }
    Ok(())
}
