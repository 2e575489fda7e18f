//! A launch that was checked and prepared for the spawner.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use lastbyte_sys::spawn::{Failure, Output, Request, Stdin as SpawnStdin, Step};
use lastbyte_sys::{Errno, tag};

use super::directory;
use crate::Id;
use crate::launch::environment::{COOKIE, Environment};
use crate::launch::{BaseEnv, Launch, Program, Stdin, Streams};
use crate::owner::stdin::QUEUE_BYTES;

/// Why a launch cannot run on any machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    #[error("the command is empty")]
    EmptyCommand,
    #[error("{what} contains a NUL byte")]
    Nul { what: Part },
    #[error(
        "the environment name {name:?} {}", if name.is_empty() { "is empty" } else { "contains '='" }
    )]
    EnvName { name: OsString },
    #[error("the variable {name} is given more than once, at least once as a secret")]
    SecretTwice { name: String },
    #[error("cannot use the working directory {}", if path.as_os_str().is_empty() { "\"\"".into() } else { path.to_string_lossy() })]
    Cwd {
        path: PathBuf,
        #[source]
        errno: Errno,
    },
    #[error("the input has {bytes} bytes, more than the limit of {QUEUE_BYTES}")]
    Input { bytes: usize },
}

/// A part of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Argument(usize),
    Cwd,
    EnvName(OsString),
    EnvValue(OsString),
}

/// Why a command did not start: the step that failed and the kernel's error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpawnError {
    #[error("cannot run {program:?}")]
    Program {
        program: OsString,
        #[source]
        errno: Errno,
    },
    /// A name without a slash.
    #[error("{program:?} was not found in PATH")]
    NotInPath { program: OsString },
    #[error("cannot run {program:?}: it is a directory")]
    Directory { program: OsString },
    /// The program exists, but the interpreter in its first line does not.
    #[error("cannot run {program:?}: its interpreter is missing")]
    Interpreter {
        program: OsString,
        #[source]
        errno: Errno,
    },
    #[error("cannot use the working directory {path}", path = path.display())]
    Cwd {
        path: PathBuf,
        #[source]
        errno: Errno,
    },
    #[error("cannot start the command: {step} failed")]
    Step {
        step: Step,
        #[source]
        errno: Errno,
    },
}

/// Something the caller did not ask for, although the start succeeded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    #[error("no home directory was found, so the command runs in /")]
    NoHome,
    /// The provider failed; the text is its own.
    #[error("{0}")]
    Environment(String),
    #[error(
        "the command could not be started in its own cgroup, so its tree is found by scanning \
         all processes: {0}"
    )]
    NoCgroup(Errno),
    #[error(
        "this kernel cannot keep the command from signalling other processes of its user: Linux \
         6.12 can"
    )]
    Signals,
    /// Startup files, or folders of the server.
    #[error("created {}, so that the sandbox can protect them: only what exists can be protected", listed(.0))]
    Created(Vec<PathBuf>),
}

/// Paths by their names in the folder that they have in common.
fn listed(paths: &[PathBuf]) -> String {
    let is_above_all = |folder: &&Path| paths.iter().all(|path| path.starts_with(folder));
    let folder = paths.first().and_then(|first| first.ancestors().skip(1).find(is_above_all));
    let folder = folder.unwrap_or(Path::new("/"));
    let name = |path: &PathBuf| path.strip_prefix(folder).unwrap_or(path).display().to_string();
    let names: Vec<String> = paths.iter().map(name).collect();
    format!("{} in {}", names.join(", "), folder.display())
}

/// Ready to be spawned.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) request: Request,
    /// Replaces the first argument once the program's own name is not needed for errors.
    pub(crate) arg0: Option<CString>,
    pub(crate) cwd: PathBuf,
    /// The folder for temporary files, if the environment names one.
    pub(crate) tmpdir: Option<OsString>,
    pub(crate) warnings: Vec<Warning>,
}

impl Plan {
    pub(crate) fn new(
        id: Id,
        launch: &Launch,
        configured: Option<&Path>,
        base: Environment,
    ) -> Result<Self, LaunchError> {
        check_names(launch)?;
        check_secrets(launch)?;
        check_input(&launch.stdin)?;
        let argv = argv(&launch.program)?;
        no_nul(launch.cwd.as_ref().map_or(b"", |cwd| cwd.as_os_str().as_bytes()), || Part::Cwd)?;
        let (cwd, warning) = directory::choose(launch.cwd.as_deref(), configured, &base)?;
        // Use the server's PATH to find the shell, whatever the command's own PATH is.
        let search = base.get("PATH").map(OsStr::to_owned);
        let mut env = match launch.base_env {
            BaseEnv::Engine => base,
            BaseEnv::Empty => Environment::default(),
        };
        env.edit(&launch.env);
        env.add(&launch.secrets);
        env.force(&launch.forced_env);
        if launch.base_env == BaseEnv::Engine || !tag::is_available() {
            env.set(COOKIE, id.to_string());
        }
        let path = match launch.program {
            Program::Shell(_) => search,
            Program::Argv(_) => env.get("PATH").map(OsStr::to_owned),
        };
        let tmpdir = env.get("TMPDIR").map(OsStr::to_owned);
        let request = Request {
            programs: programs(argv[0].as_bytes(), path.as_deref()),
            argv,
            env: entries(&env)?,
            cwd: c_string(cwd.as_os_str().as_bytes(), || Part::Cwd)?,
            stdin: match &launch.stdin {
                Stdin::Closed => SpawnStdin::Null,
                Stdin::Open | Stdin::Given(_) => SpawnStdin::Pipe,
            },
            output: match launch.streams {
                Streams::Merged => Output::Merged,
                Streams::Split => Output::Split,
                Streams::Pty(size) => Output::Pty(size),
            },
            // The rest is set at the spawn.
            ..Request::default()
        };
        let arg0 = launch.arg0.as_ref();
        let arg0 = arg0.map(|name| c_string(name.as_bytes(), || Part::Argument(0))).transpose()?;
        Ok(Self { request, arg0, cwd, tmpdir, warnings: warning.into_iter().collect() })
    }
}

impl From<Failure> for SpawnError {
    fn from(Failure { step, errno }: Failure) -> Self {
        Self::Step { step, errno }
    }
}

impl SpawnError {
    /// Adds the names that the system call does not know.
    pub(crate) fn from_failure(failure: Failure, request: &Named, cwd: &Path) -> Self {
        let Failure { step, errno } = failure;
        match step {
            Step::Cwd => Self::Cwd { path: cwd.to_owned(), errno },
            Step::Program => {
                let program = request.program.clone();
                // Joining an absolute path gives that path.
                let path = |path: &CString| cwd.join(OsStr::from_bytes(path.to_bytes()));
                let paths: Vec<PathBuf> = request.programs.iter().map(path).collect();
                match errno {
                    Errno::NOENT if paths.iter().any(|path| path.exists()) => {
                        Self::Interpreter { program, errno }
                    }
                    Errno::NOENT if !program.as_bytes().contains(&b'/') => {
                        Self::NotInPath { program }
                    }
                    Errno::ACCESS if paths.iter().all(|path| path.is_dir()) => {
                        Self::Directory { program }
                    }
                    _ => Self::Program { program, errno },
                }
            }
            _ => failure.into(),
        }
    }

    pub fn errno(&self) -> Errno {
        match self {
            Self::Program { errno, .. }
            | Self::Interpreter { errno, .. }
            | Self::Cwd { errno, .. }
            | Self::Step { errno, .. } => *errno,
            Self::NotInPath { .. } => Errno::NOENT,
            Self::Directory { .. } => Errno::ACCESS,
        }
    }
}

/// The names for an error message, kept while the spawner has the request.
#[derive(Debug)]
pub(crate) struct Named {
    program: OsString,
    programs: Vec<CString>,
}

impl Named {
    pub(crate) fn new(request: &Request) -> Self {
        Self {
            program: OsString::from_vec(request.argv[0].to_bytes().to_vec()),
            programs: request.programs.clone(),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(0) => write!(out, "the command"),
            Self::Argument(index) => write!(out, "argument {index}"),
            Self::Cwd => write!(out, "the working directory"),
            Self::EnvName(name) => write!(out, "the environment name {name:?}"),
            Self::EnvValue(name) => write!(out, "the value of the environment variable {name:?}"),
        }
    }
}

fn argv(program: &Program) -> Result<Vec<CString>, LaunchError> {
    let argument =
        |(index, text): (usize, &OsString)| c_string(text.as_bytes(), || Part::Argument(index));
    match program {
        Program::Argv(argv) if argv.first().is_none_or(|first| first.is_empty()) => {
            Err(LaunchError::EmptyCommand)
        }
        Program::Argv(argv) => argv.iter().enumerate().map(argument).collect(),
        Program::Shell(text) if text.is_empty() => Err(LaunchError::EmptyCommand),
        Program::Shell(text) => Ok(vec![c"sh".into(), c"-c".into(), argument((0, text))?]),
    }
}

/// The paths to try for a program, as `execvp` would.
fn programs(name: &[u8], path: Option<&OsStr>) -> Vec<CString> {
    if name.contains(&b'/') {
        return CString::new(name).into_iter().collect();
    }
    let path = path.map_or(b"/bin:/usr/bin".as_slice(), OsStr::as_bytes);
    let candidate = |folder: &[u8]| {
        // An empty entry means the working directory.
        let folder = if folder.is_empty() { b"." } else { folder };
        CString::new([folder, b"/", name].concat()).ok()
    };
    path.split(|byte| *byte == b':').filter_map(candidate).collect()
}

fn entries(env: &Environment) -> Result<Vec<CString>, LaunchError> {
    env.iter()
        .map(|(name, value)| {
            no_nul(name.as_bytes(), || Part::EnvName(name.to_owned()))?;
            let entry = [name.as_bytes(), b"=", value.as_bytes()].concat();
            c_string(&entry, || Part::EnvValue(name.to_owned()))
        })
        .collect()
}

fn check_names(launch: &Launch) -> Result<(), LaunchError> {
    match launch.env_names().find(|name| name.is_empty() || name.as_bytes().contains(&b'=')) {
        Some(name) => Err(LaunchError::EnvName { name: name.clone() }),
        None => Ok(()),
    }
}

fn check_secrets(launch: &Launch) -> Result<(), LaunchError> {
    let mut names: BTreeSet<&OsStr> = launch.env_names().map(OsString::as_os_str).collect();
    names.insert(OsStr::new(COOKIE));
    match launch.secrets.iter().find(|secret| !names.insert(OsStr::new(secret.name()))) {
        Some(secret) => Err(LaunchError::SecretTwice { name: secret.name().to_owned() }),
        None => Ok(()),
    }
}

fn check_input(stdin: &Stdin) -> Result<(), LaunchError> {
    match stdin {
        Stdin::Given(input) if input.len() > QUEUE_BYTES => {
            Err(LaunchError::Input { bytes: input.len() })
        }
        Stdin::Given(_) | Stdin::Open | Stdin::Closed => Ok(()),
    }
}

fn c_string(bytes: &[u8], what: impl FnOnce() -> Part) -> Result<CString, LaunchError> {
    CString::new(bytes).map_err(|_| LaunchError::Nul { what: what() })
}

fn no_nul(bytes: &[u8], what: impl FnOnce() -> Part) -> Result<(), LaunchError> {
    c_string(bytes, what).map(drop)
}
