//! A policy as bytes, for the fingerprint of a launch and for the journal.

use std::path::PathBuf;

use super::codec::{Decoder, Encoder};
use crate::sandbox::{Network, Sandbox, StartupFiles, Workspace};

pub(super) fn encode_sandbox(sandbox: &Sandbox, to: &mut Encoder) {
    match sandbox {
        Sandbox::FullAccess => to.u8(0),
        Sandbox::External => to.u8(1),
        Sandbox::ReadOnly { network } => {
            to.u8(2);
            encode_network(*network, to);
        }
        Sandbox::WorkspaceWrite(workspace) => {
            let Workspace { cwd, roots, slash_tmp, tmpdir, protect, startup_files, network } =
                workspace;
            to.u8(match startup_files {
                StartupFiles::Protected => 3,
                StartupFiles::Writable => 4,
            });
            [cwd, slash_tmp, tmpdir].into_iter().for_each(|yes| to.u8(u8::from(*yes)));
            to.list(roots.iter(), Encoder::os);
            to.list(protect.iter(), Encoder::os);
            encode_network(*network, to);
        }
    }
}

pub(super) fn decode_sandbox(from: &mut Decoder<'_>) -> Option<Sandbox> {
    Some(match from.u8()? {
        0 => Sandbox::FullAccess,
        1 => Sandbox::External,
        2 => Sandbox::ReadOnly { network: decode_network(from)? },
        kind @ (3 | 4) => {
            let startup_files = match kind {
                4 => StartupFiles::Writable,
                _ => StartupFiles::Protected,
            };
            let (cwd, slash_tmp, tmpdir) =
                (decode_flag(from)?, decode_flag(from)?, decode_flag(from)?);
            let (roots, protect) = (decode_paths(from)?, decode_paths(from)?);
            let network = decode_network(from)?;
            Sandbox::WorkspaceWrite(Workspace {
                cwd,
                roots,
                slash_tmp,
                tmpdir,
                protect,
                startup_files,
                network,
            })
        }
        _ => return None,
    })
}

fn encode_network(network: Network, to: &mut Encoder) {
    to.u8(match network {
        Network::Off => 0,
        Network::On => 1,
    });
}

fn decode_network(from: &mut Decoder<'_>) -> Option<Network> {
    Some(if decode_flag(from)? { Network::On } else { Network::Off })
}

fn decode_flag(from: &mut Decoder<'_>) -> Option<bool> {
    match from.u8()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn decode_paths(from: &mut Decoder<'_>) -> Option<Vec<PathBuf>> {
    from.list(|from| from.os().map(PathBuf::from))
}
