//! The measured servers: the daemon, and a route that does nothing.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::wire::{Address, Connection};
use crate::bench::program;

/// `lastbyte serve` of this build, with a state folder of its own.
pub(super) struct Daemon {
    child: KilledOnDrop,
    unix: PathBuf,
    tcp: SocketAddr,
    _state: TempDir,
}

/// A plain axum server with one empty route, in its own process.
pub(super) struct EmptyRoute {
    _child: KilledOnDrop,
    address: SocketAddr,
}

impl Daemon {
    pub(super) fn start() -> Result<Self> {
        Self::start_with(Command::new(program::lastbyte()?))
    }

    /// Starts `lastbyte` with this command, which may wrap it or change its environment.
    pub(super) fn start_with(command: Command) -> Result<Self> {
        // One process, which can be measured and is gone when it is killed. Not by a variable, which
        // every command would inherit.
        Self::start_as(command, &["serve", "--no-keeper"])
    }

    /// With these arguments and those that every server here has.
    pub(super) fn start_as(mut command: Command, arguments: &[&str]) -> Result<Self> {
        let state = tempfile::tempdir()?;
        let child = command
            .args(arguments)
            .args(["--no-auth", "--listen", "127.0.0.1:0", "--state"])
            .arg(state.path())
            .args(["--socket".as_ref(), state.path().join("socket").as_os_str()])
            .env("LASTBYTE_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut child = KilledOnDrop(child);
        let lines = BufReader::new(child.0.stdout.take().context("no stdout")?).lines();
        let (mut unix, mut tcp) = (None, None);
        for line in lines {
            let line = line?;
            let address = line.strip_prefix("listening on ").unwrap_or(&line);
            match (address.strip_prefix("unix:"), address.strip_prefix("http://")) {
                (Some(path), _) => unix = Some(PathBuf::from(path)),
                (None, Some(address)) => tcp = Some(address.parse()?),
                (None, None) => bail!("unexpected output of the daemon: {line:?}"),
            }
            if let (Some(unix), Some(tcp)) = (&unix, tcp) {
                return Ok(Self { child, unix: unix.clone(), tcp, _state: state });
            }
        }
        bail!("the daemon exited before it listened")
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    pub(super) fn unix(&self) -> Address {
        Address::Unix(self.unix.clone())
    }

    pub(super) fn tcp(&self) -> Address {
        Address::Tcp(self.tcp)
    }
}

impl Drop for Daemon {
    /// The keeper, if there is one, would leave its worker behind when it is killed.
    fn drop(&mut self) {
        let asked = Connection::open(&self.unix()).and_then(|mut it| it.post("/v1/shutdown", ""));
        if asked.is_ok() {
            _ = self.child.0.wait();
        }
    }
}

impl EmptyRoute {
    pub(super) fn start() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let child = command.arg("empty-route").stdout(Stdio::piped()).spawn()?;
        let (mut child, mut line) = (KilledOnDrop(child), String::new());
        BufReader::new(child.0.stdout.take().context("no stdout")?).read_line(&mut line)?;
        Ok(Self { _child: child, address: line.trim().parse()? })
    }

    pub(super) fn address(&self) -> Address {
        Address::Tcp(self.address)
    }
}

/// Serves an empty answer until it is killed; `cargo xtask bench` runs it.
pub(crate) fn empty_route() -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            // Without it the measurement is slower, but still valid.
            _ = stream.set_nodelay(true);
        });
        let route = axum::routing::get(async || "");
        axum::serve(listener, axum::Router::new().route("/", route)).await?;
        Ok(())
    })
}

/// A child that is killed and reaped when dropped.
pub(crate) struct KilledOnDrop(pub(crate) Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // It may have exited already.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}
