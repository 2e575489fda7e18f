//! A command by `exec_command` of `lastbyte mcp`, in turn with the same by the native API, and what the
//! shim takes of the memory.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::daemon::{Daemon, KilledOnDrop};
use super::program;
use super::samples::{WARM_UP, in_turn, timed};
use super::usage::status_field;
use super::wire::{Address, Connection, RUN_TRUE};

const ROUNDS: usize = 500;

pub(super) fn run() -> Result<()> {
    let daemon = Daemon::start()?;
    let mut native = Connection::open(&daemon.unix())?;
    let mut shim = Shim::start(&daemon)?;
    let [by_mcp, by_api, empty] = in_turn(WARM_UP, ROUNDS, || {
        let by_mcp = timed(|| shim.call("exec_command", json!({ "command": ["/bin/true"] })))?;
        let by_api = timed(|| native.post("/v1/processes", RUN_TRUE))?;
        Ok([by_mcp, by_api, timed(|| shim.call("list_processes", json!({})))?])
    })?;
    println!("mcp: exec_command of /bin/true over stdio, in turn with the native API");
    println!("  native          {by_api}");
    println!("  exec_command    {by_mcp}");
    println!("  list_processes  {empty}");
    println!("  ratio  {:.2}", by_mcp.ratio_to(&by_api));
    let pid = shim.child.0.id();
    let mb = |name| Ok::<_, anyhow::Error>(status_field(pid, name)? as f64 * 1024.0 / 1e6);
    let (all, files) = (mb("VmRSS:")?, mb("RssFile:")?);
    println!(
        "  shim: {all:.1} MB, of which {files:.1} MB are pages of the program and its libraries"
    );
    Ok(())
}

/// `lastbyte mcp` of a server, after the handshake.
struct Shim {
    child: KilledOnDrop,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    calls: u64,
}

impl Shim {
    fn start(daemon: &Daemon) -> Result<Self> {
        let Address::Unix(socket) = daemon.unix() else { unreachable!("it is a unix socket") };
        let mut command = Command::new(program::lastbyte()?);
        command.args(["mcp", "--socket"]).arg(socket);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let to = child.stdin.take().context("no stdin")?;
        let from = BufReader::new(child.stdout.take().context("no stdout")?);
        let mut shim = Self { child: KilledOnDrop(child), to, from, calls: 0 };
        let client = json!({ "name": "bench", "version": "0" });
        let hello =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        shim.ask("initialize", hello)?;
        Ok(shim)
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Result<()> {
        let result = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))?;
        ensure!(result["isError"] != true, "{tool}: {result}");
        Ok(())
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        self.calls += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.calls, "method": method, "params": params });
        writeln!(self.to, "{message}")?;
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        let mut answer: Value = serde_json::from_str(&line).context("the shim has ended")?;
        ensure!(answer["id"] == self.calls && answer["error"].is_null(), "{method}: {answer}");
        Ok(answer["result"].take())
    }
}
