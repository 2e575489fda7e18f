//! Whether a process of a tree listens on a port.

use std::collections::HashMap;
use std::io;

use lastbyte_sys::{listening, procfs};

use super::members::Tree;

/// The result of a port check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortState {
    /// A member holds a socket that listens on it.
    Listening,
    NotYet,
    /// No member is left that could listen.
    Nobody,
}

impl Tree {
    /// Checks the port in every network namespace that members are in. A socket counts if a member
    /// holds it, whether or not other processes also listen.
    pub(crate) fn listens_on(&self, port: u16) -> io::Result<PortState> {
        let members = self.members()?;
        if members.is_empty() {
            return Ok(PortState::Nobody);
        }
        let mut by_network = HashMap::new();
        for member in &members {
            // We cannot see the sockets of a process that is gone or that we may not read.
            let Ok(network) = listening::network_of(member.pid) else { continue };
            let sockets = by_network
                .entry(network)
                .or_insert_with(|| listening::on_port(member.pid, port).unwrap_or_default());
            if !sockets.is_empty() && procfs::holds_any(member.pid, sockets) {
                return Ok(PortState::Listening);
            }
        }
        Ok(PortState::NotYet)
    }
}
