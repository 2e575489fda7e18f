//! The permissions of a request as a policy of the engine. What cannot be enforced is refused; no
//! restriction is ever ignored.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lastbyte_engine::{Network, Sandbox, Workspace};
use serde::Deserialize;

use super::file_uri::FileUri;
use crate::doors::rpc::Fault;
use crate::sandboxing::MOST_PATHS;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SandboxContext {
    permissions: Permissions,
    #[serde(default)]
    workspace_roots: Vec<FileUri>,
    /// Always sent; it means nothing here.
    #[serde(rename = "windowsSandboxLevel")]
    _windows_sandbox_level: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Permissions {
    Managed {
        file_system: FileSystem,
        network: NetworkAccess,
    },
    Disabled,
    /// The server itself runs in a sandbox already.
    External {
        #[serde(rename = "network")]
        _network: NetworkAccess,
    },
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum FileSystem {
    Restricted { entries: Vec<Entry> },
    Unrestricted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum NetworkAccess {
    Restricted,
    Enabled,
}

#[derive(Debug, Clone, Deserialize)]
struct Entry {
    path: EntryPath,
    access: Access,
    #[serde(default)]
    missing_path_behavior: MissingPath,
}

/// What to do about a path that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MissingPath {
    /// Leave the entry out.
    Skip,
    #[default]
    #[serde(other)]
    Protect,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum EntryPath {
    Path { path: FileUri },
    GlobPattern { pattern: String },
    Special { value: Special },
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Special {
    Root,
    Minimal,
    #[serde(alias = "current_working_directory")]
    ProjectRoots {
        subpath: Option<PathBuf>,
    },
    Tmpdir,
    SlashTmp,
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Access {
    Read,
    Write,
    #[serde(alias = "none")]
    Deny,
}

impl SandboxContext {
    pub(super) fn sandbox(&self) -> Result<Sandbox, Fault> {
        match &self.permissions {
            Permissions::Disabled => Ok(Sandbox::FullAccess),
            Permissions::External { .. } => Ok(Sandbox::External),
            Permissions::Managed { file_system, network } => {
                let network = match network {
                    NetworkAccess::Restricted => Network::Off,
                    NetworkAccess::Enabled => Network::On,
                };
                match file_system {
                    FileSystem::Unrestricted => Ok(unrestricted(network)),
                    FileSystem::Restricted { entries } => self.restricted(entries, network),
                }
            }
        }
    }

    fn restricted(&self, entries: &[Entry], network: Network) -> Result<Sandbox, Fault> {
        let mut writable = Writable::default();
        let mut reads_all = false;
        for Entry { path, access, missing_path_behavior } in entries {
            match (path, access) {
                (_, Access::Deny) => {
                    return Err(refused("it denies reading, which cannot be enforced"));
                }
                (EntryPath::GlobPattern { pattern }, _) => {
                    return Err(refused(&format!("it has the pattern {pattern:?}")));
                }
                (EntryPath::Special { value: Special::Root }, Access::Write) => {
                    writable.roots.push("/".into())
                }
                (EntryPath::Special { value: Special::Root }, Access::Read) => reads_all = true,
                (EntryPath::Special { value: Special::Minimal }, Access::Read) => {}
                (EntryPath::Special { value: Special::Minimal | Special::Unknown }, _) => {
                    return Err(refused("it has a special path that is not known here"));
                }
                (EntryPath::Path { path }, access) => {
                    writable.add([path.0.clone()], *access, *missing_path_behavior)
                }
                (EntryPath::Special { value: Special::ProjectRoots { subpath } }, access) => {
                    let below = |root: &FileUri| match subpath {
                        Some(subpath) => root.0.join(subpath),
                        None => root.0.clone(),
                    };
                    let paths = self.workspace_roots.iter().map(below);
                    writable.add(paths, *access, *missing_path_behavior);
                }
                (EntryPath::Special { value: Special::Tmpdir }, access) => {
                    writable.tmpdir |= *access == Access::Write;
                }
                (EntryPath::Special { value: Special::SlashTmp }, access) => {
                    writable.slash_tmp |= *access == Access::Write;
                }
            }
        }
        if !reads_all && !writable.roots.contains(&PathBuf::from("/")) {
            return Err(refused("it allows reading only in some places, which cannot be enforced"));
        }
        writable.sandbox(network)
    }
}

/// What can be written, as far as the entries were looked at.
#[derive(Debug, Default)]
struct Writable {
    roots: Vec<PathBuf>,
    read_only: Vec<PathBuf>,
    tmpdir: bool,
    slash_tmp: bool,
}

impl Writable {
    fn add(
        &mut self,
        paths: impl IntoIterator<Item = PathBuf>,
        access: Access,
        missing: MissingPath,
    ) {
        let is_kept = |path: &PathBuf| missing == MissingPath::Protect || exists(path);
        let paths = paths.into_iter().filter(is_kept);
        match access {
            Access::Write => self.roots.extend(paths),
            Access::Read | Access::Deny => self.read_only.extend(paths),
        }
    }

    fn sandbox(self, network: Network) -> Result<Sandbox, Fault> {
        let Self { roots, read_only, tmpdir, slash_tmp } = self;
        if roots.len() + read_only.len() > MOST_PATHS {
            return Err(refused(&format!("it has more than {MOST_PATHS} paths")));
        }
        if roots.is_empty() && !tmpdir && !slash_tmp {
            return Ok(Sandbox::ReadOnly { network });
        }
        if roots == [Path::new("/")] && read_only.is_empty() && network == Network::On {
            return Ok(Sandbox::FullAccess);
        }
        // Only what is inside of a root needs to be protected.
        let is_inside =
            |path: &PathBuf| roots.iter().any(|root| path != root && path.starts_with(root));
        let protect = read_only.into_iter().filter(is_inside).collect();
        let workspace = Workspace {
            cwd: false,
            roots,
            slash_tmp,
            tmpdir,
            protect,
            network,
            ..Workspace::default()
        };
        Ok(Sandbox::WorkspaceWrite(workspace))
    }
}

/// A path that cannot be looked at may exist.
fn exists(path: &Path) -> bool {
    let found = path.symlink_metadata();
    !found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

fn unrestricted(network: Network) -> Sandbox {
    match network {
        Network::On => Sandbox::FullAccess,
        Network::Off => Sandbox::WorkspaceWrite(Workspace {
            cwd: false,
            roots: vec!["/".into()],
            network,
            ..Workspace::default()
        }),
    }
}

/// Nothing is started.
pub(super) fn refused(why: &str) -> Fault {
    Fault::internal(format!("failed to prepare process sandbox: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn context(entries: &Value, network: &str, root: &Path) -> SandboxContext {
        let root = FileUri(root.to_owned());
        from_value(json!({
            "permissions": {
                "type": "managed",
                "file_system": {"type": "restricted", "entries": entries},
                "network": network,
            },
            "workspaceRoots": [root],
            "windowsSandboxLevel": "disabled",
        }))
        .unwrap()
    }

    fn special(kind: &str, access: &str) -> Value {
        json!({"path": {"type": "special", "value": {"kind": kind}}, "access": access})
    }

    #[test]
    fn reading_everything_and_writing_nothing_is_read_only() {
        let entries = json!([special("root", "read"), special("minimal", "read")]);
        let sandbox = context(&entries, "enabled", Path::new("/ws")).sandbox();
        assert_eq!(sandbox, Ok(Sandbox::ReadOnly { network: Network::On }));
    }

    #[test]
    fn the_workspace_of_codex_protects_what_exists_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir(root.join(".git")).unwrap();
        let protected = |subpath: &str| {
            let value = json!({"kind": "project_roots", "subpath": subpath});
            json!({"path": {"type": "special", "value": value}, "access": "read",
                "missing_path_behavior": "skip"})
        };
        let entries = json!([
            special("root", "read"),
            special("project_roots", "write"),
            special("slash_tmp", "write"),
            protected(".git"),
            protected(".codex")
        ]);
        let want = Workspace {
            cwd: false,
            roots: vec![root.into()],
            slash_tmp: true,
            tmpdir: false,
            protect: vec![root.join(".git")],
            ..Workspace::default()
        };
        let sandbox = context(&entries, "restricted", root).sandbox();
        assert_eq!(sandbox, Ok(Sandbox::WorkspaceWrite(want)));
    }

    #[test]
    fn what_cannot_be_enforced_is_refused() {
        let path = |path: Value, access: &str| json!({"path": path, "access": access});
        for entry in [
            special("tmpdir", "deny"),
            special("of_another_version", "read"),
            path(json!({"type": "glob_pattern", "pattern": "*.pem"}), "read"),
            path(json!({"type": "path", "path": "file:///etc/shadow"}), "none"),
        ] {
            let entries = json!([special("root", "read"), entry]);
            let refused = context(&entries, "restricted", Path::new("/ws")).sandbox();
            assert!(refused.is_err(), "{entries}");
        }
        let some_places = json!([special("minimal", "read"), special("project_roots", "write")]);
        assert!(context(&some_places, "restricted", Path::new("/ws")).sandbox().is_err());
    }

    #[test]
    fn writing_everywhere_is_full_access_only_with_the_network() {
        let everywhere = json!([special("root", "write")]);
        let sandbox = |network| context(&everywhere, network, Path::new("/ws")).sandbox().unwrap();
        assert_eq!(sandbox("enabled"), Sandbox::FullAccess);
        assert!(sandbox("restricted").confines());
    }
}
