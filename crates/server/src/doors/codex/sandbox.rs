//! What a command may do, as a request says it. A policy that cannot be enforced refuses the
//! command; it is never ignored.

use std::path::{Path, PathBuf};

use lastbyte_engine::{Network, Sandbox, Workspace};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::door::Door;
use super::family::Family;
use super::fault::Fault;
use crate::sandboxing::MOST_PATHS;
use crate::verbs::refusal::with_cause;

/// The four kinds of Codex.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum SandboxPolicy {
    /// No sandbox.
    DangerFullAccess,
    /// Somebody outside has put up a sandbox already.
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
pub enum NetworkAccess {
    #[default]
    Restricted,
    Enabled,
}

/// A path that begins with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsolutePath(PathBuf);

impl SandboxPolicy {
    /// The policy of a named profile.
    pub(super) fn of_profile(name: &str) -> Result<Self, Fault> {
        match name {
            ":danger-full-access" => Ok(Self::DangerFullAccess),
            ":read-only" => Ok(Self::ReadOnly { network_access: false, _access: () }),
            ":workspace" => Ok(Self::WorkspaceWrite {
                writable_roots: Vec::new(),
                network_access: false,
                exclude_tmpdir_env_var: false,
                exclude_slash_tmp: false,
                _access: (),
            }),
            name => Err(Fault::invalid_request(format!(
                "invalid permission profile: there is no profile `{name}`, only `:read-only`, \
                 `:workspace` and `:danger-full-access`"
            ))),
        }
    }

    /// Refuses what no kernel is to be asked for.
    pub(super) fn check(self) -> Result<Self, Fault> {
        let roots = match &self {
            Self::WorkspaceWrite { writable_roots, .. } => writable_roots.len(),
            Self::DangerFullAccess | Self::ExternalSandbox { .. } | Self::ReadOnly { .. } => 0,
        };
        match roots > MOST_PATHS {
            true => Err(Fault::invalid_request(format!(
                "invalid sandbox policy: there are more than {MOST_PATHS} writable roots"
            ))),
            false => Ok(self),
        }
    }

    /// In the engine's words; the workspace is still anybody's.
    fn sandbox(&self) -> Sandbox {
        match self {
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
            } => Sandbox::WorkspaceWrite(Workspace {
                roots: writable_roots.iter().map(|root| root.as_path().to_owned()).collect(),
                slash_tmp: !exclude_slash_tmp,
                tmpdir: !exclude_tmpdir_env_var,
                network: network(*network_access),
                ..Workspace::default()
            }),
        }
    }
}

/// The policy of a command, which may name none.
pub(super) fn choose(
    asked: Option<&SandboxPolicy>,
    family: Family,
    door: &Door,
) -> Result<Sandbox, Fault> {
    let chosen = door.settings().sandboxing.choose(asked.map(SandboxPolicy::sandbox));
    let chosen = chosen.map_err(|way| family.not_sandboxed(&way.to_string()))?;
    Ok(in_the_servers_directory(chosen, &door.settings().cwd))
}

/// Refuses a policy that cannot be enforced for a command in this directory, before anything else is
/// said of it. What changes until the start is told then.
pub(super) fn require_enforceable(sandbox: &Sandbox, cwd: &str, door: &Door) -> Result<(), Fault> {
    let cwd = door.settings().cwd.join(cwd);
    let checked = door.engine().check_sandbox(sandbox, &cwd);
    checked.map_err(|error| Family::Command.not_sandboxed(&with_cause(&error)))
}

/// Codex's workspace is where the server is, not where the request wants to run.
fn in_the_servers_directory(sandbox: Sandbox, cwd: &Path) -> Sandbox {
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
    match access {
        true => Network::On,
        false => Network::Off,
    }
}

impl AbsolutePath {
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl<'de> Deserialize<'de> for AbsolutePath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let path = PathBuf::deserialize(from)?;
        match path.is_absolute() {
            true => Ok(Self(path)),
            false => Err(D::Error::custom("AbsolutePathBuf deserialized without a base path")),
        }
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
        assert_eq!(read_only, Ok(SandboxPolicy::of_profile(":read-only").unwrap()));
        let workspace = parse(json!({"type": "workspaceWrite"}));
        assert_eq!(workspace, Ok(SandboxPolicy::of_profile(":workspace").unwrap()));
    }

    #[test]
    fn the_workspace_is_where_the_server_is() {
        let policy = parse(json!({"type": "workspaceWrite", "writableRoots": ["/more"],
            "networkAccess": true, "excludeSlashTmp": true}));
        let sandbox = in_the_servers_directory(policy.unwrap().sandbox(), Path::new("/here"));
        let want = Workspace {
            cwd: false,
            roots: vec!["/here".into(), "/more".into()],
            slash_tmp: false,
            tmpdir: true,
            protect: Vec::new(),
            network: Network::On,
        };
        assert_eq!(sandbox, Sandbox::WorkspaceWrite(want));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
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
        assert!(SandboxPolicy::of_profile(":mine").is_err());
    }
}
