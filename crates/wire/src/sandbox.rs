//! What a command and all its children may do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A policy, in requests and in answers. A field that does not belong to the kind is an error, as any
/// unknown field is. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Sandbox {
    // Members in braces, though there are none: serde ignores unknown ones beside a bare word.
    /// Everything that the server's user may do.
    FullAccess {},
    /// The same: there is a sandbox around it already.
    External {},
    /// Can read everything and write nothing, except `/dev/null`, terminals and the like.
    ReadOnly {
        /// Whether it can connect anywhere: other hosts, this one, unix sockets.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        network: bool,
    },
    /// Like `read_only`, but can write below its directory, `/tmp`, `$TMPDIR` and `writable`.
    WorkspaceWrite {
        /// More directories that it can write below.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(inner(regex(pattern = "^/")))]
        writable: Vec<String>,
        /// Paths below them that it cannot write.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(inner(regex(pattern = "^/")))]
        protect: Vec<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        network: bool,
        /// Let it write startup files in a home directory (`.bashrc`, `.ssh`, `.config` …), which other
        /// programs run outside of the sandbox.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        allow_startup_files: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        exclude_cwd: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        exclude_slash_tmp: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        exclude_tmpdir: bool,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json, to_value};

    use super::*;

    fn parse(value: &Value) -> Result<Sandbox, String> {
        from_value(value.clone()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_policy_is_shown_in_the_words_that_ask_for_it() {
        for value in [
            json!({"kind": "full_access"}),
            json!({"kind": "external"}),
            json!({"kind": "read_only"}),
            json!({"kind": "read_only", "network": true}),
            json!({"kind": "workspace_write"}),
            json!({"kind": "workspace_write", "writable": ["/w"], "protect": ["/w/p"],
                "network": true, "allow_startup_files": true, "exclude_cwd": true, "exclude_slash_tmp": true,
                "exclude_tmpdir": true}),
        ] {
            assert_eq!(
                parse(&value).and_then(|known| to_value(known).map_err(|e| e.to_string())),
                Ok(value)
            );
        }
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        for value in [
            json!({}),
            json!("read_only"),
            json!({"kind": "readonly"}),
            json!({"kind": "full_access", "network": true}),
            json!({"kind": "external", "network": true}),
            json!({"kind": "read_only", "writable": []}),
            json!({"kind": "read_only", "network": "on"}),
            json!({"kind": "workspace_write", "writeable": ["/w"]}),
            json!({"kind": "workspace_write", "writable": "/w"}),
            json!({"kind": "workspace_write", "network": null}),
        ] {
            assert!(parse(&value).is_err(), "{value}");
        }
    }
}
