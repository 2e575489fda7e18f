//! A sandbox policy of a request.

use std::path::PathBuf;

use lastbyte_engine::{Network, Sandbox, StartupFiles, Workspace};
use lastbyte_wire as wire;
use lastbyte_wire::Error;

use super::invalid;
use crate::sandboxing::MOST_PATHS;

pub(super) fn sandbox(asked: &wire::Sandbox) -> Result<Sandbox, Error> {
    Ok(match asked {
        wire::Sandbox::FullAccess {} => Sandbox::FullAccess,
        wire::Sandbox::External {} => Sandbox::External,
        wire::Sandbox::ReadOnly { network: on } => Sandbox::ReadOnly { network: network(*on) },
        wire::Sandbox::WorkspaceWrite {
            writable,
            protect,
            network: on,
            allow_startup_files,
            exclude_cwd,
            exclude_slash_tmp,
            exclude_tmpdir,
        } => {
            check_count(writable.len() + protect.len())?;
            Sandbox::WorkspaceWrite(Workspace {
                cwd: !exclude_cwd,
                roots: paths("writable", writable)?,
                slash_tmp: !exclude_slash_tmp,
                tmpdir: !exclude_tmpdir,
                protect: paths("protect", protect)?,
                startup_files: startup_files(*allow_startup_files),
                network: network(*on),
            })
        }
    })
}

fn network(on: bool) -> Network {
    if on { Network::On } else { Network::Off }
}

fn startup_files(allowed: bool) -> StartupFiles {
    if allowed { StartupFiles::Writable } else { StartupFiles::Protected }
}

fn check_count(count: usize) -> Result<(), Error> {
    if count > MOST_PATHS {
        let message = "too many paths in `writable` and `protect`";
        return Err(invalid(format!("{message}: at most {MOST_PATHS} paths")));
    }
    Ok(())
}

fn paths(what: &str, paths: &[String]) -> Result<Vec<PathBuf>, Error> {
    paths.iter().map(|path| absolute(what, path)).collect()
}

fn absolute(what: &str, path: &str) -> Result<PathBuf, Error> {
    if path.contains('\0') {
        return Err(invalid(format!("invalid path in `{what}`: {path:?} contains a NUL byte")));
    }
    if !path.starts_with('/') {
        return Err(invalid(format!("invalid path in `{what}`: {path:?} is not absolute"))
            .hint("start the path with a slash"));
    }
    Ok(path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writable(paths: &[&str]) -> wire::Sandbox {
        wire::Sandbox::WorkspaceWrite {
            writable: paths.iter().map(|path| (*path).into()).collect(),
            protect: vec!["/w/.git".into()],
            network: true,
            allow_startup_files: true,
            exclude_cwd: false,
            exclude_slash_tmp: true,
            exclude_tmpdir: false,
        }
    }

    #[test]
    fn a_workspace_is_taken_as_it_is_said() {
        let want = Workspace {
            cwd: true,
            roots: vec!["/w".into()],
            slash_tmp: false,
            tmpdir: true,
            protect: vec!["/w/.git".into()],
            startup_files: StartupFiles::Writable,
            network: Network::On,
        };
        assert_eq!(sandbox(&writable(&["/w"])), Ok(Sandbox::WorkspaceWrite(want)));
    }

    #[test]
    fn a_path_that_means_nothing_by_itself_is_refused() {
        for path in ["", "w", "./w", "~/w", "/w\0"] {
            assert!(sandbox(&writable(&[path])).is_err(), "{path:?}");
        }
    }

    #[test]
    fn too_many_paths_are_refused_by_the_bounds_name() {
        assert!(sandbox(&writable(&["/w"; MOST_PATHS - 1])).is_ok());
        let refused = sandbox(&writable(&["/w"; MOST_PATHS])).unwrap_err();
        assert!(refused.message.contains("64 paths"), "{refused}");
    }
}
