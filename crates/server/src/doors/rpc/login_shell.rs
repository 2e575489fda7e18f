//! The login shell of the user that the server runs as.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;

use rustix::fs::{Access, access};

const DATABASE: &str = "/etc/passwd";
/// Every system has it.
const FALLBACK: &str = "/bin/sh";

/// A program that can be run, whatever the user database says.
pub(crate) fn login_shell() -> OsString {
    let database = fs::read(DATABASE).unwrap_or_default();
    let shell = find_shell(rustix::process::getuid().as_raw(), &database);
    let usable = shell.filter(|shell| access(shell, Access::EXEC_OK).is_ok());
    usable.unwrap_or_else(|| FALLBACK.into())
}

/// The last field of the user's line: `name:password:uid:gid:about:home:shell`.
fn find_shell(uid: u32, database: &[u8]) -> Option<OsString> {
    let uid = uid.to_string();
    let shell = database.split(|byte| *byte == b'\n').find_map(|line| {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
        match fields[..] {
            [_, _, owner, _, _, _, shell] if owner == uid.as_bytes() => Some(shell),
            _ => None,
        }
    })?;
    Some(OsString::from_vec(shell.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_is_the_last_field_of_the_users_line() {
        let database = b"# a comment\nroot:x:0:0:root:/root:/bin/bash\nbroken:x:7\n\
                         one:x:7:7::/home/one:/bin/zsh\nother:x:7:7::/:/bin/late\nempty:x:8:8::/:\n";
        let shell = |uid| find_shell(uid, database).map(|shell| shell.into_string().unwrap());
        assert_eq!(shell(0).as_deref(), Some("/bin/bash"));
        assert_eq!(shell(7).as_deref(), Some("/bin/zsh"), "the first line of two holds");
        assert_eq!(shell(8).as_deref(), Some(""));
        assert_eq!(shell(9), None);
    }

    #[test]
    fn there_is_always_a_shell_that_can_be_run() {
        assert!(access(login_shell(), Access::EXEC_OK).is_ok());
    }
}
