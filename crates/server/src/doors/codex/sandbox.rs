//! Sandbox policies of requests. A command whose policy cannot be enforced is refused; no policy is
//! ever ignored.

use std::path::{Path, PathBuf};

use lastbyte_engine::{Network, Sandbox, Workspace};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::door::Door;
use super::methods::Api;
use crate::doors::rpc::Fault;
use crate::sandboxing::MOST_PATHS;

/// The four kinds of Codex.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum SandboxPolicy {
    /// No sandbox.
    DangerFullAccess,
    /// The server itself runs in a sandbox already.
    ExternalSandbox {
        #[serde(default)]
        network_access: NetworkAccess,
    },
    ReadOnly {
        #[serde(default)]
        network_access: bool,
        /// From older clients; only full access still means something.
        #[serde(default, rename = "access", deserialize_with = "full_read_access_of_read_only")]
        _access: (),
    },
    WorkspaceWrite {
        #[serde(default)]
        writable_roots: Vec<AbsolutePath>,
        #[serde(default)]
        network_access: bool,
        #[serde(default)]
        exclude_tmpdir_env_var: bool,
        #[serde(default)]
        exclude_slash_tmp: bool,
        /// As above.
        #[serde(
            default,
            rename = "readOnlyAccess",
            deserialize_with = "full_read_access_of_workspace_write"
        )]
        _access: (),
    },
}

/// What an outer sandbox lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum NetworkAccess {
    #[default]
    Restricted,
    Enabled,
}

/// A path that begins with a slash.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "PathBuf")]
pub(super) struct AbsolutePath(pub(super) PathBuf);

impl SandboxPolicy {
    /// As the engine's policy, for a server in this directory.
    pub(super) fn sandbox(&self, server: &Path) -> Result<Sandbox, Fault> {
        let sandbox = match self {
            Self::DangerFullAccess => Sandbox::FullAccess,
            Self::ExternalSandbox { .. } => Sandbox::External,
            Self::ReadOnly { network_access, .. } => {
                Sandbox::ReadOnly { network: network(*network_access) }
            }
            Self::WorkspaceWrite {
                writable_roots,
                network_access,
                exclude_tmpdir_env_var,
                exclude_slash_tmp,
                ..
            } if writable_roots.len() <= MOST_PATHS => Sandbox::WorkspaceWrite(Workspace {
                roots: writable_roots.iter().map(|root| root.0.clone()).collect(),
                slash_tmp: !exclude_slash_tmp,
                tmpdir: !exclude_tmpdir_env_var,
                network: network(*network_access),
                ..Workspace::default()
            }),
            Self::WorkspaceWrite { .. } => {
                return Err(Fault::invalid_request(format!(
                    "invalid sandbox policy: there are more than {MOST_PATHS} writable roots"
                )));
            }
        };
        Ok(with_server_directory(sandbox, server))
    }
}

/// The policy of a named profile. The workspace is the directory of the command.
pub(super) fn profile(name: &str) -> Result<Sandbox, Fault> {
    match name {
        ":danger-full-access" => Ok(Sandbox::FullAccess),
        ":read-only" => Ok(Sandbox::ReadOnly { network: Network::Off }),
        ":workspace" => Ok(Sandbox::WorkspaceWrite(Workspace::default())),
        name => Err(Fault::invalid_request(format!(
            "invalid permission profile: there is no profile `{name}`, only `:read-only`, \
             `:workspace` and `:danger-full-access`"
        ))),
    }
}

/// The policy of a command: the one it asks for, or the server's default.
pub(super) fn choose(asked: Option<Sandbox>, api: Api, door: &Door) -> Result<Sandbox, Fault> {
    let settings = &door.settings;
    let default = || with_server_directory(settings.sandboxing.default.clone(), &settings.cwd);
    let chosen = settings.sandboxing.choose(Some(asked.unwrap_or_else(default)));
    chosen.map_err(|error| api.not_sandboxed(&error))
}

/// The workspace of a policy is the directory of the server, not that of the command.
fn with_server_directory(sandbox: Sandbox, cwd: &Path) -> Sandbox {
    match sandbox {
        Sandbox::WorkspaceWrite(mut workspace) => {
            let server = workspace.cwd.then(|| cwd.to_owned());
            workspace.roots.splice(0..0, server);
            Sandbox::WorkspaceWrite(Workspace { cwd: false, ..workspace })
        }
        Sandbox::FullAccess | Sandbox::External | Sandbox::ReadOnly { .. } => sandbox,
    }
}

fn network(access: bool) -> Network {
    if access { Network::On } else { Network::Off }
}

impl TryFrom<PathBuf> for AbsolutePath {
    type Error = &'static str;

    fn try_from(path: PathBuf) -> Result<Self, Self::Error> {
        let is_absolute = path.is_absolute();
        is_absolute.then_some(Self(path)).ok_or("AbsolutePathBuf deserialized without a base path")
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum ReadAccess {
    FullAccess,
    Restricted,
}

fn full_read_access_of_read_only<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error> {
    require_full_read_access(from, "readOnly.access")
}

fn full_read_access_of_workspace_write<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error> {
    require_full_read_access(from, "workspaceWrite.readOnlyAccess")
}

fn require_full_read_access<'de, D: Deserializer<'de>>(
    from: D,
    member: &str,
) -> Result<(), D::Error> {
    match Option::deserialize(from)? {
        None | Some(ReadAccess::FullAccess) => Ok(()),
        Some(ReadAccess::Restricted) => Err(D::Error::custom(format_args!(
            "{member} is no longer supported; use permissionProfile for restricted reads"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use lastbyte_engine::StartupFiles;
    use serde_json::{Value, from_value, json};

    use super::*;

    fn parse(value: Value) -> Result<SandboxPolicy, String> {
        from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn each_kind_has_its_defaults() {
        let full = parse(json!({"type": "dangerFullAccess"}));
        assert_eq!(full, Ok(SandboxPolicy::DangerFullAccess));
        let external = parse(json!({"type": "externalSandbox"}));
        let network_access = NetworkAccess::Restricted;
        assert_eq!(external, Ok(SandboxPolicy::ExternalSandbox { network_access }));
        let read_only = parse(json!({"type": "readOnly", "access": {"type": "fullAccess"}}));
        let read_only = read_only.unwrap().sandbox(Path::new("/here"));
        assert_eq!(read_only, profile(":read-only"));
        let workspace = parse(json!({"type": "workspaceWrite"})).unwrap();
        let default = Workspace { cwd: false, roots: vec!["/here".into()], ..Workspace::default() };
        let want = Sandbox::WorkspaceWrite(default);
        assert_eq!(workspace.sandbox(Path::new("/here")), Ok(want));
    }

    #[test]
    fn the_workspace_is_where_the_server_is() {
        let policy = parse(json!({"type": "workspaceWrite", "writableRoots": ["/more"],
            "networkAccess": true, "excludeSlashTmp": true}));
        let sandbox = policy.unwrap().sandbox(Path::new("/here"));
        let want = Workspace {
            cwd: false,
            roots: vec!["/here".into(), "/more".into()],
            slash_tmp: false,
            tmpdir: true,
            protect: Vec::new(),
            startup_files: StartupFiles::Protected,
            network: Network::On,
        };
        assert_eq!(sandbox, Ok(Sandbox::WorkspaceWrite(want)));
    }

    #[test]
    fn invalid_policies_are_refused() {
        let refused = [
            json!({}),
            json!("dangerFullAccess"),
            json!({"type": "readonly"}),
            json!({"type": "readOnly", "networkAccess": "yes"}),
            json!({"type": "externalSandbox", "networkAccess": true}),
            json!({"type": "workspaceWrite", "writableRoots": ["relative"]}),
            json!({"type": "readOnly", "access": {"type": "restricted"}}),
            json!({"type": "workspaceWrite", "readOnlyAccess": {"type": "restricted"}}),
        ];
        for policy in refused {
            assert!(parse(policy.clone()).is_err(), "{policy}");
        }
        assert!(profile(":mine").is_err());
    }
}
