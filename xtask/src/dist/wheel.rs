//! The wheel: the Python package with the program, which pip puts beside `python` as a script.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use sha2::{Digest as _, Sha256};
use toml::de::DeTable;

use super::archive::Tree;
use super::program::Architecture;
use super::zip::zip;
use super::{Release, text, workspace};

/// Returns the name of the file.
pub(super) fn write(
    release: &Release,
    architecture: &Architecture,
    program: &[u8],
) -> Result<String> {
    let base = format!("lastbyte-{}", release.version);
    let info = format!("{base}.dist-info");
    let mut tree = Tree::default();
    tree.add_folder(&workspace().join("sdk/python/src"), "", is_source)?;
    tree.add_program(format!("{base}.data/scripts/lastbyte"), program);
    tree.add(format!("{info}/METADATA"), metadata(&release.version)?);
    let tags = tags(architecture.name);
    let each =
        tags.split('.').fold(String::new(), |text, tag| format!("{text}Tag: py3-none-{tag}\n"));
    let wheel = format!("Wheel-Version: 1.0\nGenerator: lastbyte\nRoot-Is-Purelib: false\n{each}");
    tree.add(format!("{info}/WHEEL"), wheel);
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        tree.add(format!("{info}/licenses/{name}"), text(name)?);
    }
    tree.add(format!("{info}/licenses/THIRD-PARTY-LICENSES"), release.licenses.as_bytes());
    let record = record(&tree, &info)?;
    tree.add(format!("{info}/RECORD"), record);
    release.write(&format!("{base}-py3-none-{tags}.whl"), &zip(&tree)?)
}

/// Compiled files of this machine are not part of the package.
pub(super) fn is_source(name: &str) -> bool {
    !name.ends_with(".pyc")
}

/// A static program runs with each C library. These are the oldest that pip knows by number and by name.
fn tags(processor: &str) -> String {
    format!("manylinux_2_17_{processor}.manylinux2014_{processor}.musllinux_1_1_{processor}")
}

/// What pyproject.toml says, as a package has it.
pub(super) fn metadata(version: &str) -> Result<String> {
    let project = text("sdk/python/pyproject.toml")?;
    let project = DeTable::parse(&project)?;
    let field = |path: &[&str]| -> Result<String> {
        let mut value = project.get_ref().get("project");
        for key in path {
            value = value.and_then(|value| value.get_ref().get(*key));
        }
        let text = value.and_then(|value| value.get_ref().as_str());
        Ok(text.with_context(|| format!("pyproject.toml has no {path:?}"))?.to_owned())
    };
    Ok(format!(
        "Metadata-Version: 2.4\nName: {}\nVersion: {version}\nSummary: {}\nLicense-Expression: {}\n\
         License-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n\
         License-File: THIRD-PARTY-LICENSES\nRequires-Python: {}\n\
         Description-Content-Type: text/markdown\n\n{}",
        field(&["name"])?,
        field(&["description"])?,
        field(&["license", "text"])?,
        field(&["requires-python"])?,
        text("sdk/python/README.md")?
    ))
}

/// The hash of each file, by which pip checks and uninstalls them.
fn record(tree: &Tree, info: &str) -> Result<String> {
    let mut record = String::new();
    for (path, file) in &tree.0 {
        let hash = base64_simd::URL_SAFE_NO_PAD.encode_to_string(Sha256::digest(&file.bytes));
        writeln!(record, "{path},sha256={hash},{}", file.bytes.len())?;
    }
    writeln!(record, "{info}/RECORD,,")?;
    Ok(record)
}
