//! `fs/*`: the operations on files that Codex edits with and reads its instructions by.
//!
//! Those that are sent with a sandbox are done by a process of their own that is held to it
//! (`confined_files`), all others by the server itself. Nothing here checks a path: the kernel does.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use base64_simd::STANDARD;
use rustix::fs::OFlags;
use serde::Deserialize;
use serde_json::{Value, json};

use super::file_uri::FileUri;
use crate::doors::rpc::{Fault, base64};

/// What to do with files.
#[derive(Debug, Deserialize)]
#[serde(tag = "method", content = "params")]
pub(super) enum FileCall {
    #[serde(rename = "fs/getMetadata")]
    GetMetadata(PathParams),
    #[serde(rename = "fs/canonicalize")]
    Canonicalize(PathParams),
    #[serde(rename = "fs/readDirectory")]
    ReadDirectory(PathParams),
    #[serde(rename = "fs/readFile")]
    ReadFile(PathParams),
    #[serde(rename = "fs/writeFile")]
    WriteFile(WriteFileParams),
    #[serde(rename = "fs/createDirectory")]
    CreateDirectory(CreateDirectoryParams),
    #[serde(rename = "fs/remove")]
    Remove(RemoveParams),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PathParams {
    path: FileUri,
    follow_symlinks: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WriteFileParams {
    path: FileUri,
    data_base64: String,
    follow_symlinks: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateDirectoryParams {
    path: FileUri,
    recursive: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoveParams {
    path: FileUri,
    recursive: Option<bool>,
    force: Option<bool>,
}

/// The largest file that is read.
const MOST_FILE_BYTES: u64 = 32 << 20;
/// The most names of one directory.
const MOST_ENTRIES: usize = 50_000;

impl FileCall {
    /// Does it. Blocks for as long as the file system takes.
    pub(super) fn perform(self) -> Result<Value, Fault> {
        match self {
            Self::GetMetadata(params) => metadata(&params),
            Self::Canonicalize(params) => {
                let path = fs::canonicalize(&params.path.0).map_err(failed)?;
                Ok(json!({ "path": FileUri(path) }))
            }
            Self::ReadDirectory(params) => read_directory(&params.path.0),
            Self::ReadFile(params) => read_file(&params),
            Self::WriteFile(params) => write_file(&params),
            Self::CreateDirectory(params) => {
                let path = &params.path.0;
                let is_recursive = params.recursive.unwrap_or(true);
                let made =
                    if is_recursive { fs::create_dir_all(path) } else { fs::create_dir(path) };
                made.map_err(failed).map(|()| json!({}))
            }
            Self::Remove(params) => remove(&params),
        }
    }
}

fn metadata(params: &PathParams) -> Result<Value, Fault> {
    let path = &params.path.0;
    let link = fs::symlink_metadata(path).map_err(failed)?;
    let found = if follows(params.follow_symlinks) {
        fs::metadata(path).map_err(failed)?
    } else {
        link.clone()
    };
    Ok(json!({
        "isDirectory": found.is_dir(),
        "isFile": found.is_file(),
        "isSymlink": link.is_symlink(),
        "size": found.len(),
        "createdAtMs": unix_ms(found.created()),
        "modifiedAtMs": unix_ms(found.modified()),
    }))
}

fn read_directory(path: &Path) -> Result<Value, Fault> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // What a link leads to counts; what leads nowhere is neither.
        let found = fs::metadata(entry.path()).ok();
        entries.push(json!({
            "fileName": entry.file_name().to_string_lossy(),
            "isDirectory": found.as_ref().is_some_and(Metadata::is_dir),
            "isFile": found.as_ref().is_some_and(Metadata::is_file),
        }));
        if entries.len() > MOST_ENTRIES {
            return Err(Fault::internal(format!(
                "the directory has more than {MOST_ENTRIES} entries"
            )));
        }
    }
    Ok(json!({ "entries": entries }))
}

fn read_file(params: &PathParams) -> Result<Value, Fault> {
    let path = &params.path.0;
    let file = open(OpenOptions::new().read(true), path, params.follow_symlinks)?;
    let mut bytes = Vec::new();
    file.take(MOST_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MOST_FILE_BYTES {
        let most = MOST_FILE_BYTES >> 20;
        let message = format!("file `{}` is larger than {most} MiB", path.display());
        return Err(Fault::invalid_request(message));
    }
    Ok(json!({ "dataBase64": STANDARD.encode_to_string(&bytes) }))
}

fn write_file(params: &WriteFileParams) -> Result<Value, Fault> {
    let bytes = base64::decode(&params.data_base64).map_err(|why| {
        Fault::invalid_request(format!("fs/writeFile requires valid base64 dataBase64: {why}"))
    })?;
    let mut how = OpenOptions::new();
    let mut file = open(how.write(true).create(true), &params.path.0, params.follow_symlinks)?;
    file.set_len(0).and_then(|()| file.write_all(&bytes)).map_err(failed)?;
    Ok(json!({}))
}

/// Opens a regular file and nothing else. A pipe would keep us waiting.
fn open(how: &mut OpenOptions, path: &Path, follow: Option<bool>) -> Result<File, Fault> {
    let mut flags = OFlags::NONBLOCK;
    flags.set(OFlags::NOFOLLOW, !follows(follow));
    let file = how.custom_flags(flags.bits().cast_signed()).open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(Fault::invalid_request(format!("path `{}` is not a file", path.display())));
    }
    Ok(file)
}

fn remove(params: &RemoveParams) -> Result<Value, Fault> {
    let path = &params.path.0;
    let is_recursive = params.recursive.unwrap_or(true);
    let removed = fs::symlink_metadata(path).and_then(|found| {
        if !found.is_dir() {
            fs::remove_file(path)
        } else if is_recursive {
            fs::remove_dir_all(path)
        } else {
            fs::remove_dir(path)
        }
    });
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound && params.force.unwrap_or(true) => {}
        removed => removed.map_err(failed)?,
    }
    Ok(json!({}))
}

fn follows(asked: Option<bool>) -> bool {
    asked.unwrap_or(true)
}

/// 0 if it is not known.
fn unix_ms(time: io::Result<SystemTime>) -> u64 {
    let since = time.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn failed(error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::NotFound => Fault::new(-32004, error.to_string()),
        io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied => {
            Fault::invalid_request(error.to_string())
        }
        _ => Fault::internal(error.to_string()),
    }
}
