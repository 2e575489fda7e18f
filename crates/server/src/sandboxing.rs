//! The server's rules for sandbox policies, for every door.

use lastbyte_engine::{Network, Sandbox, Workspace};
use lastbyte_wire::{Error, ErrorCode};

/// Which policy a command gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sandboxing {
    /// For requests without a policy. It is not a limit: a request may choose any policy.
    pub default: Sandbox,
    pub ports: Ports,
}

/// Whether a command with network access can use this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ports {
    /// There is none, or it requires a token.
    #[default]
    Guarded,
    /// No token is required.
    Open,
}

/// The command could ask this very server to run what its policy forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot start a sandboxed command with network access: it could ask this server, which listens \
     on a port without a token, to run anything"
)]
pub struct SandboxBypass;

/// Of a policy. Each is a mount and a rule for the kernel.
pub(crate) const MOST_PATHS: usize = 64;

impl Sandboxing {
    /// The policy of a request, which may name none.
    pub fn choose(&self, asked: Option<Sandbox>) -> Result<Sandbox, SandboxBypass> {
        let sandbox = asked.unwrap_or_else(|| self.default.clone());
        match self.ports {
            Ports::Open if reaches_ports(&sandbox) => Err(SandboxBypass),
            Ports::Open | Ports::Guarded => Ok(sandbox),
        }
    }
}

fn reaches_ports(sandbox: &Sandbox) -> bool {
    match sandbox {
        Sandbox::FullAccess | Sandbox::External => false,
        Sandbox::ReadOnly { network } | Sandbox::WorkspaceWrite(Workspace { network, .. }) => {
            *network == Network::On
        }
    }
}

impl From<SandboxBypass> for Error {
    fn from(way: SandboxBypass) -> Self {
        Self::new(ErrorCode::SandboxUnavailable, way.to_string()).hint(
            "start the server with a token (without --no-auth), or leave the command's network off",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_only(network: Network) -> Sandbox {
        Sandbox::ReadOnly { network }
    }

    fn workspace(network: Network) -> Sandbox {
        Sandbox::WorkspaceWrite(Workspace { network, ..Workspace::default() })
    }

    #[test]
    fn who_names_none_gets_the_default_and_who_names_one_gets_that() {
        let default = read_only(Network::Off);
        let server = Sandboxing { default: default.clone(), ports: Ports::Guarded };
        assert_eq!(server.choose(None), Ok(default));
        assert_eq!(server.choose(Some(Sandbox::FullAccess)), Ok(Sandbox::FullAccess));
    }

    #[test]
    fn the_network_and_a_port_without_a_token_do_not_go_together() {
        let server = |default| Sandboxing { default, ports: Ports::Open }.choose(None).is_ok();
        for allowed in [
            Sandbox::FullAccess,
            Sandbox::External,
            read_only(Network::Off),
            workspace(Network::Off),
        ] {
            assert!(server(allowed));
        }
        assert!(!server(read_only(Network::On)));
        assert!(!server(workspace(Network::On)));
    }
}
