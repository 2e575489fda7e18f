//! The servers that are measured: the daemon, and a route that does nothing.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::wire::Address;

/// `lastbyte serve` of this build, in a state folder of its own.
pub(super) struct Daemon {
    child: Child,
    unix: PathBuf,
    tcp: SocketAddr,
    _state: TempDir,
}

/// A plain axum server with one empty route, in a program of its own.
pub(super) struct Floor {
    child: Child,
    address: SocketAddr,
}

impl Daemon {
    pub(super) fn start() -> Result<Self> {
        build()?;
        let program = std::env::current_exe()?.with_file_name("lastbyte");
        let state = tempfile::tempdir()?;
        let mut child = Command::new(program)
            .args(["serve", "--no-auth", "--listen", "127.0.0.1:0", "--state"])
            .arg(state.path())
            .args(["--socket".as_ref(), state.path().join("socket").as_os_str()])
            .env("LASTBYTE_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().context("no stdout")?).lines();
        let (mut unix, mut tcp) = (None, None);
        for line in lines {
            let line = line?;
            let place = line.strip_prefix("listening on ").unwrap_or(&line);
            match (place.strip_prefix("unix:"), place.strip_prefix("http://")) {
                (Some(path), _) => unix = Some(PathBuf::from(path)),
                (None, Some(address)) => tcp = Some(address.parse()?),
                (None, None) => bail!("the daemon says {line:?}"),
            }
            if let (Some(unix), Some(tcp)) = (&unix, tcp) {
                return Ok(Self { child, unix: unix.clone(), tcp, _state: state });
            }
        }
        bail!("the daemon went before it listened")
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn unix(&self) -> Address {
        Address::Unix(self.unix.clone())
    }

    pub(super) fn tcp(&self) -> Address {
        Address::Tcp(self.tcp)
    }
}

fn build() -> Result<()> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--package", "lastbyte-cli"])
        .current_dir(workspace)
        .status()?;
    if !built.success() {
        bail!("the program does not build");
    }
    Ok(())
}

impl Floor {
    pub(super) fn start() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("empty-route")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no stdout")?).read_line(&mut line)?;
        Ok(Self { child, address: line.trim().parse()? })
    }

    pub(super) fn address(&self) -> Address {
        Address::Tcp(self.address)
    }
}

/// Serves an empty answer until it is killed; `cargo xtask bench` calls it.
pub(crate) fn empty_route() -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            // A stream that cannot is measured as it is.
            _ = stream.set_nodelay(true);
        });
        let route = axum::routing::get(async || "");
        axum::serve(listener, axum::Router::new().route("/", route)).await?;
        Ok(())
    })
}

impl Drop for Daemon {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // One that has gone already is ended.
    _ = child.kill();
    _ = child.wait();
}
