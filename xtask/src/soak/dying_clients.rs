//! Clients that ask for output, do not read it, and are killed.
//!
//! What they follow is read and checked by other clients, which must not notice.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use crate::bench::daemon::KilledOnDrop;
use crate::bench::wire::{Address, Connection};
use crate::kill_loop::{Server, Tally};

const AT_ONCE: usize = 4;

/// Starts and kills clients until the deadline.
pub(super) fn run(
    program: &Path,
    server: &Server,
    (tally, seed): (&Tally, u64),
    deadline: Instant,
) {
    let mut random = super::random(seed, 0);
    let mut clients: Vec<(Instant, KilledOnDrop)> = Vec::new();
    while Instant::now() < deadline {
        clients.retain(|(until, _)| Instant::now() < *until);
        // There is nothing to follow now, or the server is away.
        let running = running(server).unwrap_or_default();
        if clients.len() < AT_ONCE && !running.is_empty() {
            let id = random.one_of(&running.iter().collect::<Vec<_>>());
            let until = Instant::now() + Duration::from_millis(random.between(20, 3000));
            match follow(program, server, id) {
                Ok(client) => {
                    tally.ran("dying client", 0);
                    clients.push((until, client));
                }
                Err(error) => tally.wrong_at("a client", &format!("{error:#}")),
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn running(server: &Server) -> Result<Vec<String>> {
    let mut connection = Connection::open(&Address::Unix(server.socket()))?;
    connection.limit_reads(Duration::from_secs(10))?;
    let list: Value = serde_json::from_slice(&connection.get("/v1/processes?phase=running")?)?;
    let ids = list["processes"].as_array().into_iter().flatten();
    Ok(ids.filter_map(|process| Some(process["id"].as_str()?.to_owned())).collect())
}

/// Nobody reads its output, so it soon stops reading what the server sends.
fn follow(program: &Path, server: &Server, id: &str) -> Result<KilledOnDrop> {
    let mut client = Command::new(program);
    client.args(["logs", "--follow", "--socket"]).arg(server.socket()).arg(id);
    client.env("LASTBYTE_CONFIG", "").stdin(Stdio::null()).stderr(Stdio::null());
    Ok(KilledOnDrop(client.stdout(Stdio::piped()).spawn()?))
}
