//! Secret variables of a command: their names are arguments, their values never are.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use anyhow::{Context, bail};
use lastbyte_output::mask::Secret;

#[derive(Debug, clap::Args)]
pub(crate) struct SecretArgs {
    /// Set a secret environment variable, with its value here or, as NAME=@FILE, the content of a file
    /// without its last line end; repeatable. In the output its value is replaced by ***NAME***
    #[arg(long, value_name = "NAME[=@FILE]")]
    secret: Vec<OsString>,
}

impl SecretArgs {
    pub(crate) fn secrets(&self) -> anyhow::Result<Vec<Secret>> {
        self.secret.iter().map(read).collect()
    }
}

/// No error shows what is given: it may be a value by mistake.
fn read(given: &OsString) -> anyhow::Result<Secret> {
    let Some(given) = given.to_str() else { bail!("--secret NAME[=@FILE]: the name is not UTF-8") };
    let (name, value) = match given.split_once('=') {
        None => match env::var_os(given) {
            Some(value) => (given, value.into_vec()),
            None => bail!("--secret {given}: there is no such environment variable here"),
        },
        Some((name, place)) => match place.strip_prefix('@') {
            Some(path) => (name, read_file(name, Path::new(path))?),
            None => bail!(
                "--secret {name}=…: a value must not be an argument, because other programs can read \
                 it; use `--secret {name}` or `--secret {name}=@FILE`"
            ),
        },
    };
    Ok(Secret::new(name, value)?)
}

fn read_file(name: &str, path: &Path) -> anyhow::Result<Vec<u8>> {
    let read = fs::read(path);
    let mut value =
        read.with_context(|| format!("--secret {name}: cannot read file {}", path.display()))?;
    if value.ends_with(b"\n") {
        value.pop();
        value.pop_if(|last| *last == b'\r');
    }
    Ok(value)
}
