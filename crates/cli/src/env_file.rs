//! `--env-file`: variables from a file, a line each, as `docker run` reads them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, bail};
use lastbyte_engine::EnvEdit;

/// The variables in a file. `NAME=VALUE` is taken literally, `NAME` is passed on from our environment;
/// empty lines and lines that begin with `#` are skipped. No value is quoted in an error: it may be
/// secret.
pub(crate) fn read(file: &Path) -> anyhow::Result<Vec<EnvEdit>> {
    let bytes = std::fs::read(file)
        .with_context(|| format!("cannot read the variables in {}", file.display()))?;
    let mut edits = Vec::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line).trim_ascii_start();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let Some(edit) = parse(line) else {
            bail!(
                "cannot read the variables in {}: line {} is not NAME=VALUE or NAME",
                file.display(),
                index + 1
            );
        };
        edits.push(edit);
    }
    Ok(edits)
}

/// `NAME=VALUE` or `NAME`.
pub(crate) fn parse(line: &[u8]) -> Option<EnvEdit> {
    let mut parts = line.splitn(2, |byte| *byte == b'=');
    let name = parts.next().filter(|name| is_name(name))?;
    let name = OsStr::from_bytes(name).to_owned();
    Some(match parts.next() {
        Some(value) => EnvEdit::Set(name, OsStr::from_bytes(value).to_owned()),
        None => passed_on(name),
    })
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !name.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0)
}

/// As it is here, where it may be missing.
fn passed_on(name: OsString) -> EnvEdit {
    match std::env::var_os(&name) {
        Some(value) => EnvEdit::Set(name, value),
        None => EnvEdit::Unset(name),
    }
}
