//! The paths of the programs under test, and argv vectors for `testchild`.

use std::ffi::OsString;
use std::path::PathBuf;

/// The path of the built `testchild`.
///
/// Panics with the command that builds it if it is missing.
pub fn testchild() -> PathBuf {
    built("testchild", "lastbyte-testkit")
}

/// The path of the built `lastbyte`. It is found at run time, because the path that cargo knows at
/// compile time is wrong for a copied test.
///
/// Panics with the command that builds it if it is missing.
pub fn lastbyte() -> PathBuf {
    built("lastbyte", "lastbyte-cli")
}

/// Looks in the folder of the running executable and in its parent.
fn built(name: &str, package: &str) -> PathBuf {
    let this = std::env::current_exe().expect("a running program has an executable");
    let mut folders = this.ancestors().skip(1).take(2);
    folders.find_map(|folder| Some(folder.join(name)).filter(|p| p.is_file())).unwrap_or_else(|| {
        panic!(
            "no {name} near {}: build it with `cargo build -p {package}` (with --release if the \
             tests are)",
            this.display()
        )
    })
}

/// The argv that makes `testchild` perform `actions`: `argv(["print", "hi", "then", "exit", "3"])`.
pub fn argv<I>(actions: I) -> Vec<OsString>
where
    I: IntoIterator,
    I::Item: Into<OsString>,
{
    let program = testchild().into_os_string();
    std::iter::once(program).chain(actions.into_iter().map(Into::into)).collect()
}

/// The same from one line that is split at whitespace: `script("print hi then exit 3")`.
pub fn script(actions: &str) -> Vec<OsString> {
    argv(actions.split_whitespace())
}
