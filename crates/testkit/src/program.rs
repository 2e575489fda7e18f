//! Where `testchild` is and how to ask it for something.

use std::ffi::OsString;
use std::path::PathBuf;

/// The built `testchild`: beside the folder of the running test's executable, or beside the
/// executable itself.
///
/// Panics with the command that builds it when it is not there.
pub fn testchild() -> PathBuf {
    let this = std::env::current_exe().expect("a running program has a path");
    this.ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("testchild"))
        .find(|p| p.is_file())
        .unwrap_or_else(|| {
            panic!(
                "no testchild near {}: build it with `cargo build -p lastbyte-testkit` \
                 (with --release if the tests are)",
                this.display()
            )
        })
}

/// An argv that makes `testchild` perform `actions`: `argv(["print", "hi", "then", "exit", "3"])`.
pub fn argv<I>(actions: I) -> Vec<OsString>
where
    I: IntoIterator,
    I::Item: Into<OsString>,
{
    let program = testchild().into_os_string();
    std::iter::once(program).chain(actions.into_iter().map(Into::into)).collect()
}

/// The same from one line whose words have no spaces in them: `script("print hi then exit 3")`.
pub fn script(actions: &str) -> Vec<OsString> {
    argv(actions.split_whitespace())
}
