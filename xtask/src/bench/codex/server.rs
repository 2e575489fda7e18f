//! `lastbyte app-server` of this build, and a client that does as little as it can.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::bench::program;

pub(super) struct Server {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    line: Vec<u8>,
    last_id: u64,
}

impl Server {
    pub(super) fn start() -> Result<Self> {
        let mut child = Command::new(program::lastbyte()?)
            .arg("app-server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let to = child.stdin.take().context("no stdin")?;
        let from = BufReader::with_capacity(1 << 20, child.stdout.take().context("no stdout")?);
        let mut server = Self { child, to, from, line: Vec::new(), last_id: 0 };
        server.call("initialize", r#"{"clientInfo":{"name":"bench","version":"0"}}"#)?;
        Ok(server)
    }

    /// Waits for the answer, whatever it is.
    pub(super) fn call(&mut self, method: &str, params: &str) -> Result<()> {
        self.send(method, params)?;
        self.read_line()?;
        ensure!(self.line.starts_with(b"{\"id\":") || self.line.starts_with(b"{\"error\":"));
        Ok(())
    }

    /// The bytes of all that a command writes, as deltas.
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

    /// The most memory that it ever had.
    pub(super) fn peak_memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|rest| rest.split_ascii_whitespace().next());
        Ok(number.context("no VmHWM")?.parse::<u64>()? * 1024)
    }

    fn send(&mut self, method: &str, params: &str) -> Result<()> {
        self.last_id += 1;
        let id = self.last_id;
        let line = format!("{{\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n");
        Ok(self.to.write_all(line.as_bytes())?)
    }

    fn read_line(&mut self) -> Result<()> {
        self.line.clear();
        if self.from.read_until(b'\n', &mut self.line)? == 0 {
            bail!("the server went");
        }
        Ok(())
    }
}

/// How many bytes a line carries in base64; `None` when it carries none.
pub(super) fn delta_in(line: &[u8]) -> Option<u64> {
    const BEGIN: &[u8] = b"\"deltaBase64\":\"";
    let head = &line[..line.len().min(200)];
    let begin = head.windows(BEGIN.len()).position(|part| part == BEGIN)? + BEGIN.len();
    // The rest of the line is short.
    let tail = line.len().saturating_sub(100).max(begin);
    let end = tail + line[tail..].iter().position(|byte| *byte == b'"')?;
    let padding = line[begin..end].iter().rev().take_while(|byte| **byte == b'=').count();
    Some(((end - begin) / 4 * 3 - padding) as u64)
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has gone already is ended.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
