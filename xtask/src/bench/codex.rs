//! The Codex API over standard input and output: a command in one call, and 1 GiB of output.

mod floor;
mod server;

use anyhow::{Result, ensure};

use super::samples::{Samples, WARM_UP, in_turn, timed};
use super::spawn::plain;
use floor::BareLoop;

pub(crate) use floor::encode_and_write;
pub(crate) use server::Server;

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
    let [exec, empty, floor] = in_turn(WARM_UP, ROUNDS, || {
        Ok([
            timed(|| server.call("command/exec", r#"{"command":["/bin/true"]}"#))?,
            // The answer is an error: there is no such process.
            timed(|| server.call("command/exec/terminate", r#"{"processId":"nobody"}"#))?,
            plain()?,
        ])
    })?;
    println!("codex: command/exec of /bin/true over stdio, in turn with posix_spawn and with an");
    println!("       empty call on the same connection");
    println!("  floor  {floor}");
    println!("  empty  {empty}");
    println!("  exec   {exec}");
    let (net, gross) = (exec.net_ratio_to(&floor, &empty), exec.ratio_to(&floor));
    println!("  ratio  {net:.2} net, {gross:.2} gross (aim: at most 1.25 net)");
    Ok(())
}

fn stream(server: &mut Server) -> Result<()> {
    let before = server.peak_memory()?;
    let [floor, stream] = in_turn(0, COPIES, || {
        let mut floor = BareLoop::start()?;
        Ok([
            timed(|| check_length(floor.read_to_end()?))?,
            timed(|| check_length(server.stream(&WRITER)?))?,
        ])
    })?;
    let grown = server.peak_memory()?.saturating_sub(before);
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
    println!("  memory  peak {:.1} MB above the one before", grown as f64 / 1e6);
    Ok(())
}

fn check_length(bytes: u64) -> Result<()> {
    ensure!(bytes == BYTES, "{bytes} bytes instead of {BYTES}");
    Ok(())
}

fn rate(times: &Samples) -> String {
    format!("{:.0} MiB/s", (BYTES >> 20) as f64 / times.median().as_secs_f64())
}
