//! Writes the OpenAPI document to where it is kept; a test of `wire` compares the two.

use std::fs;
use std::path::Path;

use anyhow::Context;

pub(crate) fn write() -> anyhow::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/wire/openapi.json");
    let text = serde_json::to_string_pretty(&lastbyte_wire::openapi())? + "\n";
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
