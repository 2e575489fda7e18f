//! `lastbyte mcp config`: how each agent is told to start the shim.

use std::env;

use anyhow::Context;
use serde_json::json;

use crate::print as out;

/// An agent whose settings are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ClientName {
    ClaudeCode,
    Codex,
    Gemini,
    Opencode,
    Cursor,
    Vscode,
    Goose,
}

/// Prints the settings of one.
pub(super) fn print(client: ClientName) -> anyhow::Result<()> {
    let program = env::current_exe().context("cannot find the lastbyte executable")?;
    let program = program.to_str().context("the path of the lastbyte executable is not UTF-8")?;
    out::result(settings(client, program))
}

/// The file they belong into, as a comment where the format has any, and the settings.
fn settings(client: ClientName, program: &str) -> String {
    let server = json!({ "command": program, "args": ["mcp"] });
    let pretty = |value: serde_json::Value| format!("{value:#}\n");
    match client {
        ClientName::ClaudeCode => {
            // .mcp.json of a project; `claude mcp add lastbyte -- PROGRAM mcp` writes the same.
            let server = json!({ "type": "stdio", "command": program, "args": ["mcp"] });
            pretty(json!({ "mcpServers": { "lastbyte": server } }))
        }
        // ~/.gemini/settings.json, ~/.cursor/mcp.json
        ClientName::Gemini | ClientName::Cursor => {
            pretty(json!({ "mcpServers": { "lastbyte": server } }))
        }
        ClientName::Vscode => {
            let server = json!({ "type": "stdio", "command": program, "args": ["mcp"] });
            pretty(json!({ "servers": { "lastbyte": server } }))
        }
        ClientName::Opencode => {
            let server = json!({ "type": "local", "command": [program, "mcp"], "enabled": true });
            pretty(
                json!({ "$schema": "https://opencode.ai/config.json", "mcp": { "lastbyte": server } }),
            )
        }
        ClientName::Codex => {
            // A TOML basic string and a JSON string have the same escapes for what a path can have.
            let program = json!(program);
            format!(
                "# ~/.codex/config.toml\n[mcp_servers.lastbyte]\ncommand = {program}\nargs = [\"mcp\"]\n"
            )
        }
        ClientName::Goose => {
            let program = json!(program);
            format!(
                "# ~/.config/goose/config.yaml\nextensions:\n  lastbyte:\n    name: lastbyte\n    \
                 type: stdio\n    enabled: true\n    cmd: {program}\n    args: [\"mcp\"]\n    \
                 timeout: 300\n"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn settings_in_json_name_the_program() {
        for (client, place) in [
            (ClientName::ClaudeCode, "/mcpServers/lastbyte/command"),
            (ClientName::Gemini, "/mcpServers/lastbyte/command"),
            (ClientName::Cursor, "/mcpServers/lastbyte/command"),
            (ClientName::Vscode, "/servers/lastbyte/command"),
            (ClientName::Opencode, "/mcp/lastbyte/command/0"),
        ] {
            let settings: Value = serde_json::from_str(&settings(client, "/a b/\"x\"")).unwrap();
            assert_eq!(settings.pointer(place), Some(&json!("/a b/\"x\"")), "{client:?}");
        }
    }

    #[test]
    fn settings_in_toml_name_the_program() {
        let text = settings(ClientName::Codex, "/a b/\"x\"");
        assert!(text.contains(r#"command = "/a b/\"x\"""#), "{text}");
        toml::de::DeTable::parse(&text).unwrap();
    }
}
