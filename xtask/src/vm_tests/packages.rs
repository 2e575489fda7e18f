//! The static programs of the packages, each on a kernel for its processor and with nothing but a busybox.

use std::path::Path;

use anyhow::Result;

use crate::dist;
use crate::vm::{AARCH64, Guest, Platform, X86_64};

/// What both programs are tried with, by root and by an ordinary user.
pub(super) const PROCESSORS: [(&Platform, dist::Architecture); 2] =
    [(&X86_64, dist::X86_64), (&AARCH64, dist::AARCH64)];

const SCRIPT: &str = "
mkdir -p /dev/pts /etc /home
mount -t devpts devpts /dev/pts
echo root:x:0:0::/home:/bin/sh >/etc/passwd
[ $user = 0 ] || echo server:x:$user:$user::/home:/bin/sh >>/etc/passwd
chown $user:$user /home
export HOME=/home
start-stop-daemon -S -c $user:$user -x /bin/sh -- /bin/use && echo @ passed || echo @ FAILED
sleep 1000
";

/// A machine with the program for its processor.
pub(super) fn guest(
    platform: &'static Platform,
    architecture: dist::Architecture,
    folder: &Path,
) -> Result<Guest> {
    let program = dist::build(architecture)?;
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/packages");
    let programs = [
        ("lastbyte", program.as_path()),
        ("tour", &tests.join("tour")),
        ("use", &tests.join("use-everything")),
    ];
    Guest::with_programs(platform, folder, &programs, SCRIPT)
}
