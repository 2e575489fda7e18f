//! Packages for Debian and what comes from it.
//!
//! Written here and not with `dpkg-deb`: the format is two archives in a third, and so it is made the same way on
//! every system that can build the program. `tests/packages` installs them with dpkg.

use anyhow::{Result, ensure};

use super::archive::{Tree, ar, gzip};
use super::program::Architecture;
use super::{Release, text};

/// Where `cargo install` puts the program, which the units in `contrib` name.
const BY_CARGO: &str = "%h/.cargo/bin/lastbyte";

/// Returns the name of the file.
pub(super) fn write(
    release: &Release,
    architecture: &Architecture,
    program: &[u8],
) -> Result<String> {
    let tree = contents(release, program)?;
    let mut control = Tree::default();
    control.add("control", describe(release, architecture, &tree));
    let time = release.time;
    let control = gzip(&control.tar_with_folders("./", time)?)?;
    let data = gzip(&tree.tar_with_folders("./", time)?)?;
    let members: [(&str, &[u8]); 3] =
        [("debian-binary", b"2.0\n"), ("control.tar.gz", &control), ("data.tar.gz", &data)];
    let name = format!("lastbyte_{}_{}.deb", release.version, architecture.debian);
    release.write(&name, &ar(&members, time))
}

fn contents(release: &Release, program: &[u8]) -> Result<Tree> {
    let mut tree = Tree::default();
    tree.add_program("usr/bin/lastbyte", program);
    for unit in ["lastbyte.service", "lastbyte.socket"] {
        tree.add(format!("usr/lib/systemd/user/{unit}"), unit_file(unit)?);
    }
    tree.add("usr/lib/systemd/system/lastbyte@.service", unit_file("lastbyte@.service")?);
    for (path, file) in &release.documents.0 {
        match path.split_once('/') {
            Some(("man", page)) => {
                tree.add(format!("usr/share/man/man1/{page}.gz"), gzip(&file.bytes)?);
            }
            Some((_, "bash")) => {
                tree.add("usr/share/bash-completion/completions/lastbyte", file.bytes.clone());
            }
            Some((_, "zsh")) => {
                tree.add("usr/share/zsh/vendor-completions/_lastbyte", file.bytes.clone());
            }
            _ => tree.add("usr/share/fish/vendor_completions.d/lastbyte.fish", file.bytes.clone()),
        }
    }
    let documents = "usr/share/doc/lastbyte";
    tree.add(format!("{documents}/copyright"), copyright(release)?);
    tree.add(format!("{documents}/changelog.gz"), gzip(text("CHANGELOG.md")?.as_bytes())?);
    Ok(tree)
}

/// A unit with the path of the packaged program.
fn unit_file(name: &str) -> Result<String> {
    let unit = text(&format!("contrib/systemd/{name}"))?.replace(BY_CARGO, "/usr/bin/lastbyte");
    let starts = unit.contains("ExecStart=/usr/bin/lastbyte ") || name.ends_with(".socket");
    ensure!(starts, "contrib/systemd/{name} starts another program");
    Ok(unit)
}

fn copyright(release: &Release) -> Result<String> {
    let (mit, apache) = (text("LICENSE-MIT")?, text("LICENSE-APACHE")?);
    let own = "lastbyte is licensed under MIT or Apache-2.0, at your choice.";
    Ok(format!("{own}\n\n{mit}\n\n{apache}\n\n{}", release.licenses))
}

fn describe(release: &Release, architecture: &Architecture, tree: &Tree) -> String {
    let kilobytes: usize = tree.0.values().map(|file| file.bytes.len().div_ceil(1024)).sum();
    let (version, architecture) = (&release.version, architecture.debian);
    // No `Depends`: the program is static and needs nothing.
    format!(
        "Package: lastbyte\nVersion: {version}\nArchitecture: {architecture}\n\
         Maintainer: The lastbyte authors <authors@lastbyte.invalid>\nInstalled-Size: {kilobytes}\n\
         Section: utils\nPriority: optional\n\
         Description: process server for coding agents\n \
         It runs commands, keeps their output and reports how they ended. When it\n \
         says that a process has ended, you have all its output.\n"
    )
}
