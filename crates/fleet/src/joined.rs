//! What a server is in a fleet.

use axum::Router;
use lastbyte_server::listen::Listener;

use crate::{Gateway, Node};

/// For as long as it serves.
#[derive(Debug)]
pub enum Joined {
    Nothing,
    Node(Node),
    Gateway(Gateway),
}

impl Joined {
    /// The routes of a server that is this in a fleet, and where more of its connections come from.
    pub fn route(&mut self, router: Router) -> (Router, Option<Listener>) {
        match self {
            Self::Nothing => (router, None),
            Self::Node(node) => (node.guard(router), node.listener()),
            Self::Gateway(gateway) => (gateway.router(router), None),
        }
    }
}
