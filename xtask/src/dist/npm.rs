//! The npm packages: `lastbyte`, and one with the program for each architecture, of which npm installs the one that
//! fits. Their `os` and `cpu` keep the others out; a static program needs no `libc`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::archive::{Tree, gzip};
use super::program::Architecture;
use super::{Release, output, text, workspace};

/// The package of one architecture. Returns the name of the file.
pub(super) fn write_program(
    release: &Release,
    architecture: &Architecture,
    program: &[u8],
) -> Result<String> {
    let cpu = architecture.npm;
    let mut tree = Tree::default();
    tree.add_program("bin/lastbyte", program);
    tree.add("THIRD-PARTY-LICENSES", release.licenses.as_bytes());
    tree.add("README.md", format!("The program of the package `lastbyte` for Linux on {cpu}.\n"));
    let manifest = json!({
        "name": package(architecture),
        "version": release.version,
        "description": format!("The lastbyte program for Linux on {cpu}"),
        "license": own_manifest()?["license"],
        "os": ["linux"],
        "cpu": [cpu],
        "preferUnplugged": true,
    });
    pack(release, tree, &manifest, &format!("lastbyte-linux-{cpu}"))
}

/// The package that users install. Returns the name of the file.
pub(super) fn write_main(
    release: &Release,
    programs: &[(Architecture, PathBuf)],
) -> Result<String> {
    let mut tree = Tree::default();
    let folder = tempfile::tempdir()?;
    output(Command::new(workspace().join("tests/packages/typescript")).arg(folder.path()))
        .context("cannot compile the TypeScript SDK")?;
    tree.add_folder(folder.path(), "dist/", |_| true)?;
    tree.add("README.md", text("sdk/typescript/README.md")?);
    let mut manifest = own_manifest()?;
    let fields = manifest.as_object_mut().context("package.json is not an object")?;
    // Only for development.
    for name in ["devDependencies", "scripts", "files"] {
        fields.remove(name);
    }
    let optional = programs.iter().map(|(one, _)| (package(one), json!(release.version)));
    fields.insert("optionalDependencies".into(), Value::Object(optional.collect()));
    pack(release, tree, &manifest, "lastbyte")
}

fn pack(release: &Release, mut tree: Tree, manifest: &Value, name: &str) -> Result<String> {
    tree.add("package.json", serde_json::to_string_pretty(manifest)? + "\n");
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        tree.add(name, text(name)?);
    }
    let archive = gzip(&tree.tar("package/", release.time)?)?;
    release.write(&format!("{name}-{}.tgz", release.version), &archive)
}

fn package(architecture: &Architecture) -> String {
    format!("@lastbyte/linux-{}", architecture.npm)
}

fn own_manifest() -> Result<Value> {
    Ok(serde_json::from_str(&text("sdk/typescript/package.json")?)?)
}
