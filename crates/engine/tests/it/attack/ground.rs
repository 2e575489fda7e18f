//! The place of an attack: a workspace, something outside, a server with its own folders, a
//! sibling.

use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::PathBuf;

use lastbyte_engine::{
    Enforcement, EnforcementChoice, Engine, EnvEdit, Launch, Network, Process, Sandbox, Settings,
    Status, StopPolicy, Verb, Workspace,
};
use lastbyte_testkit::Anchor;

use super::Outcome;
use crate::fixture::{Fixture, finish_text};

/// A policy under which the attempts are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    FullAccess,
    ReadOnly(Network),
    Workspace(Network),
}

impl Case {
    pub const CONFINED: [Self; 4] = [
        Self::ReadOnly(Network::Off),
        Self::Workspace(Network::Off),
        Self::ReadOnly(Network::On),
        Self::Workspace(Network::On),
    ];

    pub fn network(self) -> Network {
        match self {
            Self::FullAccess => Network::On,
            Self::ReadOnly(network) | Self::Workspace(network) => network,
        }
    }

    pub fn writes(self) -> bool {
        !matches!(self, Self::ReadOnly(_))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::FullAccess => "full access",
            Self::ReadOnly(Network::Off) => "read-only",
            Self::ReadOnly(Network::On) => "read-only with network",
            Self::Workspace(Network::Off) => "workspace-write",
            Self::Workspace(Network::On) => "workspace-write with network",
        }
    }

    fn sandbox(self) -> Sandbox {
        match self {
            Self::FullAccess => Sandbox::FullAccess,
            Self::ReadOnly(network) => Sandbox::ReadOnly { network },
            Self::Workspace(network) => Sandbox::WorkspaceWrite(Workspace {
                network,
                tmpdir: false,
                ..Workspace::default()
            }),
        }
    }
}

/// None of it is in `/tmp`, which every workspace policy can write.
pub struct Ground {
    pub fixture: Fixture,
    folder: tempfile::TempDir,
    port: TcpListener,
    _sockets: (UnixListener, UnixListener, UnixListener, UnixDatagram),
}

impl Ground {
    pub fn new(enforcement: Enforcement) -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["root", "outside", "outside/empty", "outside/target", "server"] {
            fs::create_dir(at(path)).unwrap();
        }
        for path in [
            "root/file",
            "root/to-move",
            "outside/file",
            "outside/to-move",
            "outside/to-remove",
            "server/token",
        ] {
            fs::write(at(path), path).unwrap();
        }
        std::os::unix::fs::symlink(at("outside"), at("root/link")).unwrap();
        fs::write(at("attack.py"), include_str!("attack.py")).unwrap();
        let name = SocketAddr::from_abstract_name(abstract_name(&folder)).unwrap();
        let sockets = (
            UnixListener::bind(at("outside/socket")).unwrap(),
            UnixListener::bind(at("server/socket")).unwrap(),
            UnixListener::bind_addr(&name).unwrap(),
            UnixDatagram::bind(at("outside/datagrams")).unwrap(),
        );
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let state = tempfile::tempdir_in("/var/tmp").unwrap();
        let settings = Settings {
            enforcement: EnforcementChoice::Only(enforcement),
            hidden: vec![at("server")],
            ..Settings::new(state.path())
        };
        let engine = Engine::new(settings).unwrap();
        let fixture = Fixture { engine, anchor: Anchor::listen(), state };
        Self { fixture, folder, port, _sockets: sockets }
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub async fn attack(&self, case: Case) -> Vec<Outcome> {
        let sleep = Launch { stop: StopPolicy::KILL, ..self.confined(case, ["sleep", "600"]) };
        let sibling: Process = self.fixture.start_launch(sleep).await;
        let attack = self.fixture.start_launch(self.launch(case, sibling.pid())).await;
        let (status, text) = finish_text(&attack).await;
        sibling.stop(Verb::Stop).await;
        assert_eq!(status, Status::Exited(0), "{case:?}: {text}");
        text.lines().map(|line| outcome(line).unwrap_or_else(|| panic!("{text}"))).collect()
    }

    /// The attack itself.
    pub fn launch(&self, case: Case, sibling: i32) -> Launch {
        let pair = |name: &str, value: OsString| {
            let mut argument = OsString::from(format!("{name}="));
            argument.push(value);
            argument
        };
        let number = |number: i64| OsString::from(number.to_string());
        let arguments = [
            "python3".into(),
            self.at("attack.py").into(),
            pair("root", self.at("root").into()),
            pair("outside", self.at("outside").into()),
            pair("server", self.at("server").into()),
            pair("state", self.fixture.state.path().into()),
            pair("abstract", abstract_name(&self.folder).into()),
            pair("port", number(self.port.local_addr().unwrap().port().into())),
            pair("daemon", number(std::process::id().into())),
            pair("sibling", number(sibling.into())),
        ];
        self.confined(case, arguments)
    }

    fn confined<I>(&self, case: Case, argv: I) -> Launch
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        let path = EnvEdit::Set("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
        Launch {
            cwd: Some(self.at("root")),
            sandbox: case.sandbox(),
            env: vec![path],
            ..Launch::argv(argv)
        }
    }
}

fn abstract_name(folder: &tempfile::TempDir) -> String {
    folder.path().file_name().unwrap().to_str().unwrap().to_owned()
}

fn outcome(line: &str) -> Option<Outcome> {
    let mut fields = line.split('\t').map(str::to_owned);
    let (group, name, result) = (fields.next()?, fields.next()?, fields.next()?);
    Some(Outcome { group, name, result })
}
