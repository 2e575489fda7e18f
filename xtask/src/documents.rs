//! Writes the generated documents: the JSON schema, the OpenAPI document and docs/cli.md. Tests of
//! `wire` and `cli` check that the committed files are up to date.
#![expect(clippy::disallowed_methods, reason = "cargo runs the program")]

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

pub(crate) fn write_schema() -> Result<()> {
    let schema = serde_json::to_string_pretty(&lastbyte_wire::schema())? + "\n";
    write("crates/wire/schema.json", schema.as_bytes())
}

pub(crate) fn write_openapi() -> Result<()> {
    let openapi = serde_json::to_string_pretty(&lastbyte_wire::openapi())? + "\n";
    write("crates/wire/openapi.json", openapi.as_bytes())
}

/// `lastbyte` generates the page from its own help.
pub(crate) fn write_cli_doc() -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--package", "lastbyte-cli", "--features", "fleet"]);
    cargo.args(["--", "cli-doc"]);
    let output = cargo.current_dir(root()).output().context("cannot run cargo")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`lastbyte cli-doc` failed: {stderr}");
    write("docs/cli.md", &output.stdout)
}

fn write(path: &str, contents: &[u8]) -> Result<()> {
    fs::write(root().join(path), contents).with_context(|| format!("cannot write {path}"))
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
