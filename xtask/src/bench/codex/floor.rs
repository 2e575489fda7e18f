//! The least that such a server has to do: read output, encode it, write it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};
use base64_simd::STANDARD;

use super::WRITER;
use super::server::delta_in;

/// The loop below in its own process.
pub(super) struct BareLoop {
    child: Child,
    from: BufReader<ChildStdout>,
}

impl BareLoop {
    pub(super) fn start() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.arg("encode-and-write").stdout(Stdio::piped()).spawn()?;
        let from = BufReader::with_capacity(1 << 20, child.stdout.take().context("no stdout")?);
        Ok(Self { child, from })
    }

    /// Reads all lines and returns the number of output bytes in them.
    pub(super) fn read_to_end(&mut self) -> Result<u64> {
        let (mut bytes, mut line) = (0, Vec::new());
        while self.from.read_until(b'\n', &mut line)? > 0 {
            bytes += delta_in(&line).context("a line without output")?;
            line.clear();
        }
        self.child.wait()?;
        Ok(bytes)
    }
}

/// Runs the writer and forwards its output; `cargo xtask bench` runs it.
pub(crate) fn encode_and_write() -> Result<()> {
    let mut command = Command::new(WRITER[0]);
    let mut child = command.args(&WRITER[1..]).stdout(Stdio::piped()).spawn()?;
    let mut from = child.stdout.take().context("no stdout")?;
    let mut to = io::stdout().lock();
    let (mut bytes, mut line) = (vec![0; 64 * 1024], String::new());
    loop {
        let count = from.read(&mut bytes)?;
        if count == 0 {
            break;
        }
        line.clear();
        line.push_str(r#"{"method":"command/exec/outputDelta","params":{"processId":"p","#);
        line.push_str(r#""stream":"stdout","deltaBase64":""#);
        STANDARD.encode_append(&bytes[..count], &mut line);
        line.push_str("\",\"capReached\":false},\"emittedAtMs\":1700000000000}\n");
        to.write_all(line.as_bytes())?;
    }
    child.wait()?;
    Ok(())
}
