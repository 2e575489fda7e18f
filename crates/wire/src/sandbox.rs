//! What a command and all its children may do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A policy. The same words ask for it and show it; a member that does not belong to the kind is
/// refused like any unknown one. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Sandbox {
    // Members in braces, though there are none: serde ignores unknown ones beside a bare word.
    /// Whatever the server's user may do.
    FullAccess {},
    /// The same: somebody outside has put up a sandbox already.
    External {},
    /// Everything can be read; nothing can be written but `/dev/null`, terminals and the like.
    ReadOnly {
        /// Whether it can reach anybody: other hosts, this one, unix sockets.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        network: bool,
    },
    /// As `read_only`, but its own directory, `/tmp`, `$TMPDIR` and some more can be written.
    WorkspaceWrite {
        /// What else can be written, with all that is below.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(inner(regex(pattern = "^/")))]
        writable: Vec<String>,
        /// What stays as it is inside of what can be written.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(inner(regex(pattern = "^/")))]
        protect: Vec<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        network: bool,
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
                "network": true, "exclude_cwd": true, "exclude_slash_tmp": true,
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
