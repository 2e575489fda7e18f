//! Whether somebody of a tree listens on a port.

use std::collections::HashMap;
use std::io;

use lastbyte_sys::{listening, procfs};

use super::members::Tree;

/// What a look for a port has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortLook {
    /// A member holds a socket that listens on it.
    Listening,
    NotYet,
    /// Nobody is left who could.
    Nobody,
}

impl Tree {
    /// Looks at the ports of every network that members are in: a socket counts if it is held by
    /// one of them, whoever else listens.
    pub(crate) fn listens_on(&self, port: u16) -> io::Result<PortLook> {
        let members = self.members()?;
        if members.is_empty() {
            return Ok(PortLook::Nobody);
        }
        let mut by_network = HashMap::new();
        for member in &members {
            // One that is gone, or not ours to look at, listens on nothing that we can know of.
            let Ok(network) = listening::network_of(member.pid) else { continue };
            let sockets = by_network
                .entry(network)
                .or_insert_with(|| listening::on_port(member.pid, port).unwrap_or_default());
            if !sockets.is_empty() && procfs::holds_any(member.pid, sockets) {
                return Ok(PortLook::Listening);
            }
        }
        Ok(PortLook::NotYet)
    }
}
