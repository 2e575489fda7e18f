//! `cargo xtask dist [--out DIR] [--check]`: the packages of lastbyte, for each architecture. `--program-only` builds the
//! program of the packages for this one, and prints its path.
//!
//! [`program`] builds static programs, [`deb`], [`wheel`], [`sdist`] and [`npm`] put them into packages,
//! [`licenses`] collects the licences of what is linked. All archives are written here (`archive`, `zip`) with sorted
//! entries and fixed times, so the same commit gives the same packages; only `gzip` compresses. `--program FILE`
//! packages another program, for this architecture only. `--check` installs each package in a clean root.
#![expect(clippy::print_stdout, reason = "prints what it made")]
#![expect(clippy::disallowed_methods, reason = "it starts tools as a user does")]

mod archive;
mod deb;
mod licenses;
mod npm;
mod program;
mod sdist;
mod wheel;
mod zip;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

pub(crate) use program::{AARCH64, Architecture, X86_64, build};

const USAGE: &str = "dist [--out DIR] [--program FILE] [--check], or dist --program-only";

/// What is the same for each architecture.
struct Release {
    version: String,
    /// Of the commit, in seconds since 1970; for files in archives.
    time: u64,
    licenses: String,
    /// Manual pages and completions.
    documents: archive::Tree,
    /// Where packages are written.
    out: PathBuf,
}

/// Returns failure if a check fails.
pub(crate) fn run(options: &[String]) -> Result<ExitCode> {
    let mut out = workspace().join("dist");
    let (mut given, mut check, mut program_only) = (None, false, false);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut value = || options.next().with_context(|| format!("{option} needs a value"));
        match option.as_str() {
            "--out" => out = PathBuf::from(value()?),
            "--program" => given = Some(PathBuf::from(value()?)),
            "--check" => check = true,
            "--program-only" => program_only = true,
            _ => bail!("unknown option {option}; usage: {USAGE}"),
        }
    }
    if program_only {
        println!("{}", build(Architecture::of_this_machine()?)?.display());
        return Ok(ExitCode::SUCCESS);
    }
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let out = out.canonicalize()?;
    let programs = match given {
        Some(file) => vec![(Architecture::of_this_machine()?, file)],
        None => program::build_all()?,
    };
    package(&programs, &out)?;
    if check {
        let status =
            Command::new(workspace().join("tests/packages/clean-roots")).arg(&out).status()?;
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes every package, and the checksums of all.
fn package(programs: &[(Architecture, PathBuf)], out: &Path) -> Result<()> {
    let release = Release {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        time: time_of_commit(),
        licenses: licenses::collect(programs)?,
        documents: program::documents(programs)?,
        out: out.to_owned(),
    };
    let mut made = vec![release.write("THIRD-PARTY-LICENSES", release.licenses.as_bytes())?];
    for (architecture, file) in programs {
        let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let name = format!("lastbyte-{}-linux-{}", release.version, architecture.name);
        made.push(release.write(&name, &bytes)?);
        archive::make_executable(&out.join(&name))?;
        made.push(deb::write(&release, architecture, &bytes)?);
        made.push(wheel::write(&release, architecture, &bytes)?);
        made.push(npm::write_program(&release, architecture, &bytes)?);
    }
    made.push(sdist::write(&release)?);
    made.push(npm::write_main(&release, programs)?);
    made.sort();
    let sums = checksums(out, &made)?;
    fs::write(out.join("SHA256SUMS"), sums)?;
    Ok(())
}

impl Release {
    /// Writes a file and returns its name.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<String> {
        let path = self.out.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{:>9}  {name}", bytes.len());
        Ok(name.to_owned())
    }
}

/// In the form that `sha256sum --check` reads.
fn checksums(folder: &Path, names: &[String]) -> Result<String> {
    let mut text = String::new();
    for name in names {
        let digest = Sha256::digest(fs::read(folder.join(name))?);
        let digest = digest.iter().fold(String::new(), |mut text, byte| {
            // A string accepts everything.
            _ = write!(text, "{byte:02x}");
            text
        });
        writeln!(text, "{digest}  {name}")?;
    }
    Ok(text)
}

/// When the commit was made, or 1980 without one: zip has no earlier time.
fn time_of_commit() -> u64 {
    const THE_YEAR_1980: u64 = 315_532_800;
    let shown =
        Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(workspace()).output();
    let text = shown.ok().and_then(|shown| String::from_utf8(shown.stdout).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(THE_YEAR_1980)
}

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// A text file of the workspace.
fn text(path: &str) -> Result<String> {
    fs::read_to_string(workspace().join(path)).with_context(|| format!("cannot read {path}"))
}

/// Runs a tool and returns what it printed.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    let done = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{command:?} failed: {}", said.trim());
    Ok(done.stdout)
}
