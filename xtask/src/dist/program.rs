//! The static programs, and what they print about themselves.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::archive::Tree;
use super::{output, workspace};

/// One kind of processor, and what others call it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Architecture {
    pub(crate) name: &'static str,
    pub(crate) target: &'static str,
    pub(super) debian: &'static str,
    pub(super) npm: &'static str,
}

pub(crate) const X86_64: Architecture = Architecture {
    name: "x86_64",
    target: "x86_64-unknown-linux-musl",
    debian: "amd64",
    npm: "x64",
};
pub(crate) const AARCH64: Architecture = Architecture {
    name: "aarch64",
    target: "aarch64-unknown-linux-musl",
    debian: "arm64",
    npm: "arm64",
};

impl Architecture {
    pub(super) fn of_this_machine() -> Result<Self> {
        let mut both = [X86_64, AARCH64].into_iter();
        let this = std::env::consts::ARCH;
        both.find(|one| one.name == this)
            .with_context(|| format!("there are no packages for {this}"))
    }
}

/// Builds the program for each architecture.
pub(super) fn build_all() -> Result<Vec<(Architecture, PathBuf)>> {
    [X86_64, AARCH64].into_iter().map(|one| Ok((one, build(one)?))).collect()
}

/// Builds the program of the packages for one architecture.
pub(crate) fn build(architecture: Architecture) -> Result<PathBuf> {
    let target = architecture.target;
    install_target(target)?;
    let variable = target.to_uppercase().replace('-', "_");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--locked", "--profile", "dist", "--package", "lastbyte-cli"]);
    cargo.args(["--features", "fleet", "--target", target, "--message-format", "json"]);
    cargo.current_dir(workspace()).env(format!("CARGO_TARGET_{variable}_RUSTFLAGS"), flags()?);
    if architecture.name != std::env::consts::ARCH {
        // Rust has a linker for every target, but no C library: none is needed for musl.
        cargo.env(format!("CARGO_TARGET_{variable}_LINKER"), "rust-lld");
    }
    let compiler = format!("CC_{}", target.replace('-', "_"));
    if std::env::var_os(&compiler).is_none() {
        cargo.env(&compiler, c_compiler(architecture)?);
    }
    let messages = String::from_utf8(output(&mut cargo)?)?;
    let messages =
        messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs =
        messages.filter_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
    programs.next_back().with_context(|| format!("cargo built no program for {target}"))
}

/// The compiler for the C and assembler of `ring`, which needs nothing of a C library but what musl has too.
fn c_compiler(architecture: Architecture) -> Result<String> {
    if architecture.name == std::env::consts::ARCH {
        return Ok("cc".to_owned());
    }
    let compiler = format!("{}-linux-gnu-gcc", architecture.name);
    let package = format!("gcc-{}-linux-gnu", architecture.name.replace('_', "-"));
    let found = Command::new(&compiler).arg("--version").output();
    let found = found.is_ok_and(|said| said.status.success());
    ensure!(
        found,
        "{compiler} does not run: install a C compiler for {}, on Debian {package}",
        architecture.name
    );
    Ok(compiler)
}

/// At a fixed address, so that nothing is relocated at each start; and without the paths of this machine.
fn flags() -> Result<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let usual = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    let home = home.or_else(usual).context("neither CARGO_HOME nor HOME is set")?;
    let remap = format!("--remap-path-prefix={}=/cargo", home.display());
    ensure!(!remap.contains(' '), "cannot build with a space in {}", home.display());
    Ok(format!("-Crelocation-model=static -Cstrip=symbols {remap}"))
}

fn install_target(target: &str) -> Result<()> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", target]);
    let libraries = String::from_utf8(output(&mut rustc)?)?;
    if !Path::new(libraries.trim()).is_dir() {
        output(Command::new("rustup").args(["target", "add", target]))
            .with_context(|| format!("the target {target} is not installed"))?;
    }
    Ok(())
}

/// The manual pages and completions, as the program that runs here prints them.
pub(super) fn documents(programs: &[(Architecture, PathBuf)]) -> Result<Tree> {
    let this = std::env::consts::ARCH;
    let program = programs.iter().find(|(one, _)| one.name == this);
    let (_, program) = program.with_context(|| format!("no program for {this}"))?;
    let folder = tempfile::tempdir()?;
    output(Command::new(program).arg("man").arg(folder.path()))?;
    let mut tree = Tree::default();
    tree.add_folder(folder.path(), "man/", |_| true)?;
    for shell in ["bash", "zsh", "fish"] {
        let script = output(Command::new(program).args(["completions", shell]))?;
        tree.add(format!("completions/{shell}"), script);
    }
    Ok(tree)
}
