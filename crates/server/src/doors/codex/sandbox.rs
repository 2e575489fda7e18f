//! What a command may do, as a request says it.
//!
//! Only the shape is judged here. A policy that this server cannot enforce refuses the command; it
//! is never ignored.

use std::path::{Path, PathBuf};

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::fault::Fault;

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

    /// Refuses what cannot be enforced.
    pub(super) fn require_enforceable(&self) -> Result<(), Fault> {
        let kind = match self {
            Self::DangerFullAccess | Self::ExternalSandbox { .. } => return Ok(()),
            Self::ReadOnly { .. } => "readOnly",
            Self::WorkspaceWrite { .. } => "workspaceWrite",
        };
        Err(Fault::internal(format!(
            "exec failed: this server cannot enforce the sandbox policy `{kind}` and does not run \
             the command without it; `dangerFullAccess` and `externalSandbox` are not sandboxed"
        )))
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
