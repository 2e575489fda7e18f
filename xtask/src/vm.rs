//! A virtual machine with a kernel of its own, to test what must not be done to this one.
//!
//! QEMU without KVM and without a network: it needs no rights. The kernel and busybox are Debian's; only
//! QEMU and cpio are installed, kernel and busybox are unpacked into the target folder (`platform`). A [`Guest`] is
//! what every boot has in memory: some programs and a script that is its first process. What it prints
//! is read here line by line, and what must survive a boot is on a disk image.
#![expect(clippy::disallowed_methods, reason = "it starts tools as a user does")]

mod platform;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::bench::daemon::KilledOnDrop;

pub(crate) use platform::{AARCH64, Platform, X86_64};

/// Programs besides QEMU, and the Debian packages that have them.
const TOOLS: [(&str, &str); 2] = [("cpio", "cpio"), ("mkfs.ext4", "e2fsprogs")];
const TARGET: &str = "x86_64-unknown-linux-musl";
/// What that kernel needs for a disk, in the order of their dependencies.
const MODULES: [&str; 6] = [
    "virtio/virtio_ring",
    "virtio/virtio",
    "virtio/virtio_pci_modern_dev",
    "virtio/virtio_pci_legacy_dev",
    "virtio/virtio_pci",
    "block/virtio_blk",
];
const INIT: &str = "#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /tmp
for module in /modules/*; do [ ! -e $module ] || insmod $module; done
";

/// The kernel and the files that are in memory after each boot.
pub(crate) struct Guest {
    platform: &'static Platform,
    kernel: PathBuf,
    initramfs: PathBuf,
}

/// A machine that runs. Dropping it is the loss of its power.
pub(crate) struct Machine {
    qemu: KilledOnDrop,
    console: Receiver<(Instant, String)>,
}

/// Why there can be no such virtual machine here, after an attempt to install what is missing.
pub(crate) fn unavailable(platform: &Platform) -> Option<String> {
    if std::env::consts::ARCH != "x86_64" {
        return Some("it is made for x86_64".into());
    }
    let tools = || TOOLS.iter().chain([&platform.qemu]);
    let missing = || tools().filter(|(tool, _)| find(tool).is_none()).map(|(_, name)| *name);
    if rustix::process::geteuid().is_root() && missing().next().is_some() {
        let script = "apt-get update -qq && apt-get install -y -qq --no-install-recommends \"$@\"";
        // Whether it worked is seen below.
        _ = run(Command::new("sh").args(["-c", script, "sh"]).args(missing()));
    }
    let names: Vec<&str> = missing().collect();
    if !names.is_empty() {
        return Some(format!("install {} (their names on Debian)", names.join(" ")));
    }
    let ready = static_target().and_then(|()| platform.unpacked());
    ready.err().map(|error| format!("{error:#}"))
}

impl Guest {
    /// With lastbyte, testchild and this program in `/bin`, and a script that runs when the usual file
    /// systems are mounted.
    pub(crate) fn new(folder: &Path, script: &str) -> Result<Self> {
        let modules = X86_64.unpacked()?.modules;
        let root = folder.join("root");
        fs::create_dir_all(root.join("modules"))?;
        for (nth, module) in MODULES.iter().enumerate() {
            let file = modules.join("kernel/drivers").join(module).with_extension("ko");
            fs::copy(&file, root.join(format!("modules/{nth}")))
                .with_context(|| format!("cannot copy {}", file.display()))?;
        }
        fs::create_dir_all(root.join("bin"))?;
        for program in static_programs()? {
            let copy = root.join("bin").join(program.file_name().context("no program")?);
            run(Command::new("strip").arg("--strip-debug").arg("-o").arg(copy).arg(&program))?;
        }
        Self::pack(&X86_64, folder, script)
    }

    /// With these programs in `/bin`, and no disk.
    pub(crate) fn with_programs(
        platform: &'static Platform,
        folder: &Path,
        programs: &[(&str, &Path)],
        script: &str,
    ) -> Result<Self> {
        let bin = folder.join("root/bin");
        fs::create_dir_all(&bin)?;
        for (name, file) in programs {
            fs::copy(file, bin.join(name)).with_context(|| format!("{}", file.display()))?;
        }
        Self::pack(platform, folder, script)
    }

    /// Adds busybox and the script to the root in a folder, and packs it.
    fn pack(platform: &'static Platform, folder: &Path, script: &str) -> Result<Self> {
        let unpacked = platform.unpacked()?;
        let root = folder.join("root");
        for name in ["proc", "sys", "dev", "tmp", "disk"] {
            fs::create_dir_all(root.join(name))?;
        }
        fs::copy(&unpacked.busybox, root.join("bin/busybox"))?;
        fs::write(root.join("init"), format!("{INIT}{script}"))?;
        fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755))?;
        let initramfs = folder.join("initramfs");
        let pack = "cd \"$0\" && find . | cpio --quiet -o -H newc >\"$1\"";
        run(Command::new("sh").args(["-c", pack]).args([&root, &initramfs]))?;
        Ok(Self { platform, kernel: unpacked.kernel, initramfs })
    }

    /// Boots it, with a disk as `/dev/vda`. The script has these variables in its environment.
    pub(crate) fn boot(&self, disk: Option<&Path>, variables: &str) -> Result<Machine> {
        let drive = |disk: &Path| format!("if=virtio,format=raw,file={}", disk.display());
        let console = self.platform.console;
        let mut child = Command::new(self.platform.qemu.0)
            .args(self.platform.machine)
            .args(["-accel", "tcg", "-smp", "2", "-m", "512", "-nodefaults", "-no-reboot"])
            .args(["-display", "none", "-serial", "stdio"])
            .arg("-kernel")
            .arg(&self.kernel)
            .arg("-initrd")
            .arg(&self.initramfs)
            .args([
                "-append",
                &format!("console={console} quiet panic=-1 no_timer_check {variables}"),
            ])
            .args(disk.iter().flat_map(|disk| ["-drive".to_owned(), drive(disk)]))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().context("no console")?).split(b'\n');
        let (sender, console) = channel();
        thread::spawn(move || {
            let lines = lines.map_while(Result::ok);
            // Nobody listens any more once the machine is dropped.
            let mut texts = lines.map(|line| String::from_utf8_lossy(&line).trim().to_owned());
            texts.try_for_each(|text| sender.send((Instant::now(), text)))
        });
        Ok(Machine { qemu: KilledOnDrop(child), console })
    }
}

impl Machine {
    /// The next line of its console, and when it came; `None` at the deadline.
    pub(crate) fn line(&self, deadline: Instant) -> Result<Option<(Instant, String)>> {
        match self.console.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!("the machine went off by itself"),
        }
    }

    /// Cuts its power, and returns when that was and what it had printed before.
    pub(crate) fn cut_power(mut self) -> Result<(Instant, Vec<(Instant, String)>)> {
        self.qemu.0.kill()?;
        let killed = Instant::now();
        self.qemu.0.wait()?;
        Ok((killed, self.console.iter().collect()))
    }
}

/// Installs what is needed to build programs without shared libraries, if it is missing.
fn static_target() -> Result<()> {
    let libraries = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .context("cannot run rustc")?
        .stdout;
    let libraries = PathBuf::from(String::from_utf8(libraries)?.trim());
    if !libraries.is_dir() {
        run(Command::new("rustup").args(["target", "add", TARGET]))
            .with_context(|| format!("the target {TARGET} is not installed"))?;
    }
    Ok(())
}

/// Server, command and client without shared libraries, for a guest.
fn static_programs() -> Result<Vec<PathBuf>> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--bins", "--target", TARGET])
        .args(["-p", "lastbyte-cli", "-p", "lastbyte-testkit", "-p", "xtask"])
        .current_dir(workspace)
        .status()?;
    ensure!(built.success(), "cannot build lastbyte for {TARGET}");
    let folder = target_folder()?.join(TARGET).join("debug");
    Ok(["lastbyte", "testchild", "xtask"].map(|name| folder.join(name)).to_vec())
}

/// An empty ext4 file system in a file.
pub(crate) fn make_disk(path: &Path, megabytes: u64) -> Result<()> {
    let size = format!("{megabytes}M");
    run(Command::new(find("mkfs.ext4").context("no mkfs.ext4")?).arg("-q").arg(path).arg(size))
}

fn target_folder() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    this.ancestors().nth(2).map(Path::to_owned).context("this program is not in a target folder")
}

fn only_entry(folder: &Path) -> Result<PathBuf> {
    Ok(fs::read_dir(folder)?.next().context("an empty folder")??.path())
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    path.split(':').map(|folder| Path::new(folder).join(program)).find(|file| file.is_file())
}

fn run(command: &mut Command) -> Result<()> {
    let done = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{command:?}: {}", said.trim());
    Ok(())
}
