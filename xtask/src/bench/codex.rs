//! The Codex door over standard input and output: a command in one call, and 1 GiB of output.

mod floor;
mod server;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::samples::Samples;
use super::spawn::plain;
use floor::Floor;
use server::Server;

pub(crate) use floor::encode_and_write;

const ROUNDS: usize = 1000;
const COPIES: usize = 3;
const BYTES: u64 = 1 << 30;
/// Writes [`BYTES`].
const WRITER: [&str; 5] = ["dd", "if=/dev/zero", "bs=64k", "count=16384", "status=none"];

pub(super) fn run() -> Result<()> {
    let mut server = Server::start()?;
    one_call(&mut server)?;
    stream(&mut server)
}

fn one_call(server: &mut Server) -> Result<()> {
    let (mut execs, mut empties, mut floors) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS + 50 {
        let times = [
            timed(|| server.call("command/exec", r#"{"command":["/bin/true"]}"#))?,
            // One that finds nobody and is answered as such.
            timed(|| server.call("command/exec/terminate", r#"{"processId":"nobody"}"#))?,
            plain()?,
        ];
        if round >= 50 {
            execs.push(times[0]);
            empties.push(times[1]);
            floors.push(times[2]);
        }
    }
    let (exec, empty, floor) = (Samples::new(execs), Samples::new(empties), Samples::new(floors));
    let net = exec.median().saturating_sub(empty.median());
    println!("codex: command/exec of /bin/true over stdio, in turn with posix_spawn and with an");
    println!("       empty call on the same connection");
    println!("  floor  {floor}");
    println!("  empty  {empty}");
    println!("  exec   {exec}");
    let (net, gross) = (net.as_secs_f64() / floor.median().as_secs_f64(), exec.ratio_to(&floor));
    println!("  ratio  {net:.2} net, {gross:.2} gross (aim: at most 1.25 net)");
    Ok(())
}

fn stream(server: &mut Server) -> Result<()> {
    let (mut floors, mut streams) = (Vec::new(), Vec::new());
    let before = server.peak_memory()?;
    for _ in 0..COPIES {
        let mut floor = Floor::start()?;
        floors.push(timed(|| whole(floor.until_end()?))?);
        streams.push(timed(|| whole(server.stream(&WRITER)?))?);
    }
    let grown = server.peak_memory()?.saturating_sub(before);
    let (floor, stream) = (Samples::new(floors), Samples::new(streams));
    println!(
        "codex: 1 GiB streamed over stdio with the cap off, in turn with a bare loop that reads"
    );
    println!("       64 KiB, encodes and writes it");
    println!("  floor   {}", rate(&floor));
    println!(
        "  stream  {}, {:.2} of the floor's rate",
        rate(&stream),
        1.0 / stream.ratio_to(&floor)
    );
    println!("  memory  {:.1} MB more at its peak than before", grown as f64 / 1e6);
    Ok(())
}

fn whole(bytes: u64) -> Result<()> {
    ensure!(bytes == BYTES, "{bytes} bytes instead of {BYTES}");
    Ok(())
}

fn rate(times: &Samples) -> String {
    format!("{:.0} MiB/s", (BYTES >> 20) as f64 / times.median().as_secs_f64())
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed())
}
