//! What pip takes on a system without a wheel: a source package that says in one sentence why it cannot be installed.

use anyhow::Result;

use super::archive::{Tree, gzip};
use super::{Release, text, wheel};

const PYPROJECT: &str =
    "[build-system]\nrequires = []\nbuild-backend = \"refuse\"\nbackend-path = [\".\"]\n";
/// Called by pip. It needs nothing else, so it says so at once and without a network.
const BACKEND: &str = r#""""Refuses to build: lastbyte comes as a program, in wheels for the systems that it runs on."""

import platform
import sys


def build_wheel(*_, **__):
    found = f"{platform.system()} {platform.machine()}"
    sys.exit(f"cannot install lastbyte from source on {found}: it comes as wheels for Linux on x86_64 and aarch64")


def build_sdist(*_, **__):
    build_wheel()


def get_requires_for_build_wheel(*_, **__):
    build_wheel()
"#;

/// Returns the name of the file.
pub(super) fn write(release: &Release) -> Result<String> {
    let base = format!("lastbyte-{}", release.version);
    let mut tree = Tree::default();
    tree.add("PKG-INFO", wheel::metadata(&release.version)?);
    tree.add("pyproject.toml", PYPROJECT);
    tree.add("refuse.py", BACKEND);
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        tree.add(name, text(name)?);
    }
    tree.add("THIRD-PARTY-LICENSES", release.licenses.as_bytes());
    release.write(&format!("{base}.tar.gz"), &gzip(&tree.tar(&format!("{base}/"), release.time)?)?)
}
