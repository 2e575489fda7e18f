//! What a client is told of this machine.

use std::env;
use std::path::PathBuf;

use serde::Serialize;

use super::door::Settings;
use super::file_uri::FileUri;

/// Optional features are left out: without a word of them they are off.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EnvironmentInfo {
    shell: Shell,
    executor_version: &'static str,
    cwd: FileUri,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_home_dir: Option<FileUri>,
    platform_os: &'static str,
    prepend_path_dirs: [FileUri; 0],
    temporary_directories: Vec<FileUri>,
    temp_dir: FileUri,
    capabilities: Capabilities,
}

#[derive(Debug, Serialize)]
struct Shell {
    name: String,
    path: String,
}

/// None.
#[derive(Debug, Serialize)]
struct Capabilities {}

impl EnvironmentInfo {
    pub(super) fn new(settings: &Settings) -> Self {
        let variable = |name| settings.environment.get(name).filter(|value| !value.is_empty());
        let folder = |name| variable(name).map(|path| FileUri(settings.cwd.join(path)));
        let shell = PathBuf::from(&settings.shell);
        let name = shell.file_name().unwrap_or_default();
        Self {
            shell: Shell {
                name: name.to_string_lossy().into_owned(),
                path: shell.to_string_lossy().into_owned(),
            },
            executor_version: env!("CARGO_PKG_VERSION"),
            cwd: FileUri(settings.cwd.clone()),
            user_home_dir: folder("HOME"),
            platform_os: env::consts::OS,
            prepend_path_dirs: [],
            temporary_directories: folder("TMPDIR").into_iter().collect(),
            temp_dir: folder("TMPDIR").unwrap_or_else(|| FileUri("/tmp".into())),
            capabilities: Capabilities {},
        }
    }
}
