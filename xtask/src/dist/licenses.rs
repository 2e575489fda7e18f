//! The licences of what is linked into the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::program::Architecture;
use super::{output, workspace};

const BEGINNING: &str = "\
Licences of what is linked into lastbyte: libraries in Rust, Rust's own library, and in static programs musl and
libunwind. Where there is a choice with MIT, it is MIT.
";
/// What comes with the compiler under MIT, and its copyright.
const OF_THE_COMPILER: [(&str, &str); 2] = [
    ("the Rust standard library", "Copyright (c) The Rust Project Contributors"),
    ("musl", "Copyright (c) 2005-2020 Rich Felker, et al."),
];
const UNWINDER: (&str, &str) = (
    "LLVM libunwind (Apache-2.0 WITH LLVM-exception)",
    "A part of the LLVM Project. Its exception asks for no notice where a compiler has linked it.",
);

/// The text of the file, for all architectures.
pub(super) fn collect(programs: &[(Architecture, PathBuf)]) -> Result<String> {
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (architecture, _) in programs {
        let metadata = metadata(architecture.target)?;
        for package in linked(&metadata)? {
            let text = |key: &str| package[key].as_str().unwrap_or_default();
            let name = format!("{} {} ({})", text("name"), text("version"), text("license"));
            let manifest = Path::new(text("manifest_path"));
            let folder = manifest.parent().context("a manifest without a folder")?;
            names.entry(license(folder, package)?).or_default().insert(name);
        }
    }
    let permission = mit_permission()?;
    for (name, copyright) in OF_THE_COMPILER {
        names
            .entry(format!("{copyright}\n\n{permission}"))
            .or_default()
            .insert(format!("{name} (MIT)"));
    }
    names.entry(UNWINDER.1.into()).or_default().insert(UNWINDER.0.into());
    let mut groups: Vec<(BTreeSet<String>, String)> =
        names.into_iter().map(|(text, names)| (names, text)).collect();
    groups.sort();
    let mut all = BEGINNING.to_owned();
    for (names, text) in groups {
        let names = names.into_iter().collect::<Vec<_>>().join("\n");
        write!(all, "\n{}\n{names}\n\n{}\n", "=".repeat(80), text.trim_end())?;
    }
    Ok(all)
}

/// The conditions of the MIT licence, without a copyright.
fn mit_permission() -> Result<String> {
    let own = super::text("LICENSE-MIT")?;
    let at = own.find("Permission is").context("LICENSE-MIT has no permission")?;
    Ok(own[at..].to_owned())
}

fn metadata(target: &str) -> Result<Value> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", target]);
    Ok(serde_json::from_slice(&output(cargo.current_dir(workspace()))?)?)
}

/// The packages of others that the program needs to run: neither for tests nor only to build, and no macros.
fn linked(metadata: &Value) -> Result<Vec<&Value>> {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let packages = metadata["packages"].as_array().context("no packages")?;
    let by_id: BTreeMap<&str, &Value> =
        packages.iter().filter_map(|package| Some((package["id"].as_str()?, package))).collect();
    let nodes = metadata["resolve"]["nodes"].as_array().context("no graph")?;
    let nodes: BTreeMap<&str, &Value> =
        nodes.iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let program = packages.iter().find(|package| package["name"] == "lastbyte-cli");
    let mut ahead = vec![program.context("no lastbyte-cli")?["id"].as_str().unwrap_or_default()];
    let mut found = BTreeSet::new();
    while let Some(id) = ahead.pop() {
        if is_macro(by_id[id]) || !found.insert(id) {
            continue;
        }
        let dependencies = nodes[id]["deps"].as_array().context("no dependencies")?;
        let needed = dependencies.iter().filter(|dependency| {
            list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
        });
        ahead.extend(needed.filter_map(|dependency| dependency["pkg"].as_str()));
    }
    Ok(found
        .into_iter()
        .map(|id| by_id[id])
        .filter(|package| !package["source"].is_null())
        .collect())
}

fn is_macro(package: &Value) -> bool {
    let targets = package["targets"].as_array();
    targets.is_some_and(|targets| {
        targets.iter().any(|target| {
            target["kind"].as_array().is_some_and(|kinds| kinds.contains(&"proc-macro".into()))
        })
    })
}

/// The texts in a package's folder: MIT alone if it may be chosen, and notices.
fn license(folder: &Path, package: &Value) -> Result<String> {
    let expression = package["license"].as_str().unwrap_or_default();
    let may_be_mit = expression.split("AND").all(|part| part.contains("MIT"));
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let is_license = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT", "UNLICENSE"]
            .iter()
            .any(|start| name.starts_with(start));
        if is_license && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    let is_mit = |path: &&PathBuf| path.to_string_lossy().to_uppercase().contains("MIT");
    if may_be_mit && files.iter().any(|path| is_mit(&path)) {
        files.retain(|path| is_mit(&path) || path.to_string_lossy().contains("NOTICE"));
    }
    let mut texts = String::new();
    for file in files {
        texts.push_str(fs::read_to_string(&file)?.trim());
        texts.push_str("\n\n");
    }
    if texts.is_empty() {
        let name = package["name"].as_str().unwrap_or_default();
        ensure!(may_be_mit, "{name} has no licence text");
        let people = package["authors"].as_array().cloned().unwrap_or_default();
        let people: Vec<&str> = people.iter().filter_map(Value::as_str).collect();
        let people =
            if people.is_empty() { format!("the authors of {name}") } else { people.join(", ") };
        texts = format!("Copyright (c) {}\n\n{}", people, mit_permission()?);
    }
    Ok(texts)
}
