//! `lastbyte app-server` of this build, and a minimal client.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::bench::daemon::KilledOnDrop;
use crate::bench::program;
use crate::bench::usage::status_field;

pub(crate) struct Server {
    child: KilledOnDrop,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    line: Vec<u8>,
    last_id: u64,
}

impl Server {
    pub(super) fn start() -> Result<Self> {
        Self::start_alone(Command::new(program::lastbyte()?))
    }

    /// One process, which can be measured, of `lastbyte` with this command, which may wrap it or
    /// change its environment.
    pub(crate) fn start_alone(command: Command) -> Result<Self> {
        Self::start_with(command, &["--no-keeper"])
    }

    pub(crate) fn start_with(mut command: Command, options: &[&str]) -> Result<Self> {
        let command = command.arg("app-server").args(options);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let to = child.stdin.take().context("no stdin")?;
        let from = BufReader::with_capacity(1 << 20, child.stdout.take().context("no stdout")?);
        let mut server =
            Self { child: KilledOnDrop(child), to, from, line: Vec::new(), last_id: 0 };
        server.call("initialize", r#"{"clientInfo":{"name":"bench","version":"0"}}"#)?;
        Ok(server)
    }

    /// Waits for the answer, successful or not.
    pub(crate) fn call(&mut self, method: &str, params: &str) -> Result<()> {
        self.send(method, params)?;
        self.read_line()?;
        ensure!(self.line.starts_with(b"{\"id\":") || self.line.starts_with(b"{\"error\":"));
        Ok(())
    }

    /// Waits for the answer and returns it, whatever notifications come first.
    pub(crate) fn ask(&mut self, method: &str, params: &str) -> Result<serde_json::Value> {
        self.send(method, params)?;
        loop {
            self.read_line()?;
            let answer: serde_json::Value = serde_json::from_slice(&self.line)?;
            if answer["id"] == self.last_id {
                return Ok(answer);
            }
        }
    }

    /// Runs a command and returns the number of output bytes in its deltas.
    pub(super) fn stream(&mut self, command: &[&str]) -> Result<u64> {
        let params = serde_json::json!({
            "command": command, "processId": "p", "streamStdoutStderr": true,
            "disableOutputCap": true, "disableTimeout": true,
        });
        self.send("command/exec", &params.to_string())?;
        let mut bytes = 0;
        loop {
            self.read_line()?;
            match delta_in(&self.line) {
                Some(count) => bytes += count,
                None => return Ok(bytes),
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    pub(super) fn peak_memory(&self) -> Result<u64> {
        Ok(status_field(self.pid(), "VmHWM:")? * 1024)
    }

    pub(crate) fn send(&mut self, method: &str, params: &str) -> Result<()> {
        self.last_id += 1;
        let id = self.last_id;
        let line = format!("{{\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n");
        Ok(self.to.write_all(line.as_bytes())?)
    }

    fn read_line(&mut self) -> Result<()> {
        self.line.clear();
        if self.from.read_until(b'\n', &mut self.line)? == 0 {
            bail!("the server closed its output");
        }
        Ok(())
    }
}

/// The number of output bytes in a line; `None` if it is not a delta.
pub(super) fn delta_in(line: &[u8]) -> Option<u64> {
    const BEGIN: &[u8] = b"\"deltaBase64\":\"";
    let head = &line[..line.len().min(200)];
    let begin = head.windows(BEGIN.len()).position(|part| part == BEGIN)? + BEGIN.len();
    // Little follows the base64 text, so its end is found from the back.
    let tail = line.len().saturating_sub(100).max(begin);
    let end = tail + line[tail..].iter().position(|byte| *byte == b'"')?;
    let padding = line[begin..end].iter().rev().take_while(|byte| **byte == b'=').count();
    Some(((end - begin) / 4 * 3 - padding) as u64)
}
