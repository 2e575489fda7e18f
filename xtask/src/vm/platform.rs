//! The processors that a virtual machine can have, and Debian's kernel and busybox for each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{only_entry, run, target_folder};

/// A processor, and what QEMU and Debian call it.
pub(crate) struct Platform {
    pub(crate) name: &'static str,
    /// The program, and the package that has it.
    pub(super) qemu: (&'static str, &'static str),
    pub(super) machine: &'static [&'static str],
    pub(super) console: &'static str,
    debian: &'static str,
}

pub(crate) const X86_64: Platform = Platform {
    name: "x86_64",
    qemu: ("qemu-system-x86_64", "qemu-system-x86"),
    machine: &[],
    console: "ttyS0",
    debian: "amd64",
};
pub(crate) const AARCH64: Platform = Platform {
    name: "aarch64",
    qemu: ("qemu-system-aarch64", "qemu-system-arm"),
    machine: &["-machine", "virt", "-cpu", "max"],
    console: "ttyAMA0",
    debian: "arm64",
};

/// What a boot needs.
pub(super) struct Unpacked {
    pub(super) kernel: PathBuf,
    pub(super) modules: PathBuf,
    pub(super) busybox: PathBuf,
}

impl Platform {
    /// Downloads and unpacks the packages once, without installing them.
    pub(super) fn unpacked(&self) -> Result<Unpacked> {
        let target = target_folder()?;
        let folder = target.join(format!("vm-{}", self.debian));
        if !folder.exists() {
            let part = folder.with_extension("part");
            download(&part, self.debian)?;
            fs::rename(&part, &folder)?;
        }
        let modules = only_entry(&folder.join("lib/modules"))?;
        let version = modules.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Unpacked {
            kernel: folder.join(format!("boot/vmlinuz-{version}")),
            busybox: folder.join("bin/busybox"),
            modules,
        })
    }
}

/// With lists of packages of its own: those of this machine may be for another processor.
fn download(folder: &Path, debian: &str) -> Result<()> {
    let script = "rm -rf \"$0\" && mkdir -p \"$0\"/lists/partial \"$0\"/cache/archives/partial && cd \"$0\" && \
        own=\"-qq -o APT::Architecture=$1 -o APT::Architectures=$1 -o Dir::State::lists=$0/lists \
          -o Dir::Cache=$0/cache -o Dir::State::status=/dev/null -o APT::Sandbox::User=root\" && \
        apt-get $own update && \
        name=$(apt-cache $own depends linux-image-cloud-$1 | sed -n 's/.*Depends: //p' | head -n 1) && \
        apt-get $own download \"$name\" busybox-static && \
        for package in ./*.deb; do dpkg-deb -x $package . && rm $package; done && rm -r lists cache";
    run(Command::new("sh").args(["-c", script]).arg(folder).arg(debian))
        .with_context(|| format!("cannot download a kernel and busybox for {debian} with apt"))
}
