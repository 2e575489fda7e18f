//! A policy as answers show it.

use std::path::PathBuf;

use lastbyte_engine::{Network, Sandbox, Workspace};
use lastbyte_wire as wire;

pub fn sandbox(sandbox: &Sandbox) -> wire::Sandbox {
    match sandbox {
        Sandbox::FullAccess => wire::Sandbox::FullAccess {},
        Sandbox::External => wire::Sandbox::External {},
        Sandbox::ReadOnly { network } => wire::Sandbox::ReadOnly { network: is_on(*network) },
        Sandbox::WorkspaceWrite(workspace) => of_workspace(workspace),
    }
}

fn of_workspace(workspace: &Workspace) -> wire::Sandbox {
    let Workspace { cwd, roots, slash_tmp, tmpdir, protect, network } = workspace;
    wire::Sandbox::WorkspaceWrite {
        writable: texts(roots),
        protect: texts(protect),
        network: is_on(*network),
        exclude_cwd: !cwd,
        exclude_slash_tmp: !slash_tmp,
        exclude_tmpdir: !tmpdir,
    }
}

fn is_on(network: Network) -> bool {
    match network {
        Network::On => true,
        Network::Off => false,
    }
}

fn texts(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}
