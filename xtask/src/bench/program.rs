//! The program `lastbyte` as it is released.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

/// Builds it and says where it is.
pub(super) fn lastbyte() -> Result<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--package", "lastbyte-cli"])
        .current_dir(workspace)
        .status()?;
    if !built.success() {
        bail!("the program does not build");
    }
    Ok(std::env::current_exe()?.with_file_name("lastbyte"))
}
