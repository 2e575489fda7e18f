//! A file that sends a browser on to a link. Other users of the machine see the arguments of a browser, and
//! a link is a secret; they cannot read this file.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::paths;

/// A browser has read the file long before.
const KEPT: Duration = Duration::from_secs(3600);
const PREFIX: &str = "open-";

/// Writes the file; returns its address.
pub(super) fn write(link: &str) -> io::Result<String> {
    let socket = paths::socket_path(None, None).map_err(io::Error::other)?;
    let folder = socket.parent().ok_or(io::ErrorKind::NotFound)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    remove_old(folder);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let path = folder.join(format!("{PREFIX}{}.html", since.as_nanos()));
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(page(link).as_bytes())?;
    Ok(format!("file://{}", encoded(&path)))
}

/// Those of earlier calls. One that cannot be removed does no harm: its link has been used or has expired.
fn remove_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().as_bytes().starts_with(PREFIX.as_bytes());
        let changed = entry.metadata().and_then(|metadata| metadata.modified());
        if is_ours && changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > KEPT)) {
            _ = fs::remove_file(entry.path());
        }
    }
}

fn page(link: &str) -> String {
    let link = link.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0; url={link}\">\n<title>lastbyte</title>\n\
         <a href=\"{link}\">Open lastbyte</a>\n"
    )
}

/// The path as a part of an address.
fn encoded(path: &Path) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let bytes = path.as_os_str().as_bytes().iter();
    bytes
        .map(|&byte| if is_plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_any_bytes_is_an_address() {
        assert_eq!(encoded(Path::new("/run/a b#c%\u{e4}")), "/run/a%20b%23c%25%C3%A4");
    }

    #[test]
    fn a_link_cannot_end_its_attribute() {
        assert!(!page("http://x/\"><script>").contains("<script>"));
    }
}
