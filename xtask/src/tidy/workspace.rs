//! The files and crates of the workspace, read once for all checks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

/// How the files end whose text is checked.
const TEXTS: [&str; 6] = [".rs", ".toml", ".md", ".lock", "/package.json", "/package-lock.json"];

/// The files of the workspace, and its crates according to cargo. Paths are relative to the root
/// and use `/`.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    /// The text of each `.rs`, `.toml`, `.md` and `.lock` file, and of those for npm.
    pub(super) texts: BTreeMap<String, String>,
    /// Every file and folder.
    pub(super) paths: BTreeSet<String>,
    pub(super) crates: Vec<Crate>,
}

#[derive(Debug)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) manifest: String,
    pub(super) dependencies: Vec<Dependency>,
}

#[derive(Debug)]
pub(super) struct Dependency {
    pub(super) name: String,
    pub(super) purpose: Purpose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// For the crate itself or its build script.
    Crate,
    /// For its tests, examples and benches.
    Tests,
}

/// Something to repair: where it is, what is wrong and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

impl Violation {
    pub(super) fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl Workspace {
    /// Reads the workspace of this program.
    pub(super) fn read() -> anyhow::Result<Self> {
        let metadata = metadata()?;
        let root = metadata["workspace_root"].as_str().context("cargo metadata has no root")?;
        let mut workspace = Self { crates: crates(&metadata, root), ..Self::default() };
        workspace.read_folder(Path::new(root), "")?;
        Ok(workspace)
    }

    /// Reads the files of a checkout, but not its crates.
    pub(super) fn read_files(root: &Path) -> anyhow::Result<Self> {
        let mut workspace = Self::default();
        workspace.read_folder(root, "")?;
        Ok(workspace)
    }

    /// The paths and texts of the files whose path ends with `end`.
    pub(super) fn texts_ending<'a>(
        &'a self,
        end: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let texts = self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        texts.filter(move |(path, _)| path.ends_with(end))
    }

    /// The number of the first line that begins with `start`; 1 if there is none.
    pub(super) fn line_of(&self, path: &str, start: &str) -> usize {
        let lines = self.texts.get(path).map(|text| text.lines());
        lines.and_then(|mut lines| lines.position(|line| line.starts_with(start))).unwrap_or(0) + 1
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> anyhow::Result<()> {
        let absolute = root.join(folder);
        let entries = absolute.read_dir().with_context(|| absolute.display().to_string())?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if matches!(name.as_str(), ".git" | "target") {
                continue;
            }
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            if entry.file_type()?.is_dir() {
                self.read_folder(root, &path)?;
            } else if TEXTS.iter().any(|end| path.ends_with(end)) {
                let text = std::fs::read_to_string(entry.path()).with_context(|| path.clone())?;
                self.texts.insert(path.clone(), text);
            }
            self.paths.insert(path);
        }
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "cargo is not a command of lastbyte")]
fn metadata() -> anyhow::Result<Value> {
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .context("cannot run cargo metadata")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata failed: {stderr}");
    serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")
}

fn crates(metadata: &Value, root: &str) -> Vec<Crate> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let from_package = |package: &Value| Crate {
        name: text(&package["name"]),
        manifest: text(&package["manifest_path"])
            .trim_start_matches(root)
            .trim_start_matches('/')
            .to_owned(),
        dependencies: list(&package["dependencies"])
            .iter()
            .map(|dependency| Dependency {
                name: text(&dependency["name"]),
                purpose: match dependency["kind"].as_str() {
                    Some("dev") => Purpose::Tests,
                    _ => Purpose::Crate,
                },
            })
            .collect(),
    };
    list(&metadata["packages"]).iter().map(from_package).collect()
}

#[cfg(test)]
impl Workspace {
    /// A workspace with these files and no crates.
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut workspace = Self::default();
        for (path, text) in files {
            workspace.texts.insert((*path).to_owned(), (*text).to_owned());
            let with_folders = Path::new(path).ancestors().map(|path| path.display().to_string());
            workspace.paths.extend(with_folders);
        }
        workspace
    }

    /// Adds a crate.
    pub(super) fn with_crate(mut self, name: &str, dependencies: &[(&str, Purpose)]) -> Self {
        let dependency =
            |&(name, purpose): &(&str, Purpose)| Dependency { name: name.into(), purpose };
        self.crates.push(Crate {
            name: name.to_owned(),
            manifest: format!("crates/{name}/Cargo.toml"),
            dependencies: dependencies.iter().map(dependency).collect(),
        });
        self
    }
}
