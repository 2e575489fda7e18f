//! Settings: a flag wins over a variable, a variable over the file, the file over the default.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bare_daemon::{Daemon, serve, state};
use crate::daemon::{self, Home};
use crate::harness::{Finished, Fixture, finish};

/// Writes the file in its default place.
fn write_config(fixture: &Fixture, text: &str) -> PathBuf {
    let folder = fixture.home.path().join("config/lastbyte");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("config.toml");
    fs::write(&path, text).unwrap();
    // Independent of the umask of the tests.
    for folder in [folder.parent().unwrap(), &folder] {
        fs::set_permissions(folder, Permissions::from_mode(0o700)).unwrap();
    }
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path
}

/// A setting's value and source.
fn shown(fixture: &Fixture, name: &str, variables: &[(&str, &str)]) -> (Value, Value) {
    let mut command = fixture.lastbyte(&["config", "show", "--json"]);
    command.env_remove("LASTBYTE_LOG").envs(variables.iter().copied());
    let Finished { code, stdout, stderr } = finish(command);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let mut all: Value = serde_json::from_str(&stdout).unwrap();
    let settings = all["settings"].as_array_mut().unwrap();
    let found = settings.iter_mut().find(|setting| setting["name"] == name).unwrap();
    (found["value"].take(), found["from"].take())
}

#[test]
fn a_variable_wins_over_the_file_and_the_file_over_the_default() {
    let fixture = Fixture::new();
    let usual = json!({ "source": "default" });
    assert_eq!(shown(&fixture, "log", &[]), ("info".into(), usual.clone()));
    assert_eq!(shown(&fixture, "listen", &[]), (json!([]), usual.clone()));
    let state = state(&fixture).to_str().unwrap().to_owned();
    assert_eq!(shown(&fixture, "state", &[]), (state.into(), usual));

    let path = write_config(&fixture, "\nlog = \"warn\"\nlisten = [\"127.0.0.1:0\"]\n");
    let in_file = |line: u64| json!({ "source": "file", "path": path, "line": line });
    assert_eq!(shown(&fixture, "log", &[]), ("warn".into(), in_file(2)));
    assert_eq!(shown(&fixture, "listen", &[]), (json!(["127.0.0.1:0"]), in_file(3)));

    let variable = |name: &str| json!({ "source": "variable", "name": name });
    let log = shown(&fixture, "log", &[("LASTBYTE_LOG", "off")]);
    assert_eq!(log, ("off".into(), variable("LASTBYTE_LOG")));
    let listen = shown(&fixture, "listen", &[("LASTBYTE_LISTEN", "[::1]:1,[::1]:2")]);
    assert_eq!(listen, (json!(["[::1]:1", "[::1]:2"]), variable("LASTBYTE_LISTEN")));
    let empty = shown(&fixture, "log", &[("LASTBYTE_LOG", "")]);
    assert_eq!(empty, ("warn".into(), in_file(2)), "an empty variable is as good as none");
}

/// The path of the socket shows which of four places was used.
#[test]
fn a_server_takes_each_setting_from_the_first_place_that_has_it() {
    let fixture = Fixture::new();
    let named = |name: &str| fixture.home.path().join(name).to_str().unwrap().to_owned();
    let listens_on = |arguments: &[&str], variable: Option<&str>| {
        let mut command = serve(&fixture, arguments);
        command.envs(variable.map(|path| ("LASTBYTE_SOCKET", path)));
        let mut daemon = Daemon::start(command);
        let address = daemon.address();
        assert_eq!(daemon.stop(Signal::TERM).code, Some(0));
        address
    };
    write_config(&fixture, &format!("socket = {:?}", named("by-file")));
    let (flag, variable) = (named("by-flag"), named("by-variable"));
    assert_eq!(listens_on(&[], None), format!("unix:{}", named("by-file")));
    assert_eq!(listens_on(&[], Some(&variable)), format!("unix:{variable}"));
    assert_eq!(listens_on(&["--socket", &flag], Some(&variable)), format!("unix:{flag}"));
}

#[test]
fn a_switch_and_a_list_can_be_set_in_the_file() {
    let fixture = Fixture::new();
    write_config(&fixture, "no-auth = true\nlisten = [\"127.0.0.1:0\", \"127.0.0.1:0\"]");
    let mut daemon = Daemon::start(serve(&fixture, &[]));
    assert!(daemon.address().starts_with("unix:"));
    for url in [daemon.address(), daemon.address()] {
        let answer = crate::bare_daemon::get_tcp(&url, "/nothing", "");
        assert_eq!(answer, "HTTP/1.1 404 Not Found", "no token is asked for");
    }
    daemon.stop(Signal::TERM);
    let mut command = serve(&fixture, &["--listen", "0.0.0.0:0"]);
    let finished = finish(command);
    assert_eq!(finished.code, Some(2), "what is checked of flags is checked of them: {finished:?}");
    command = serve(&fixture, &["--listen", "127.0.0.1:0"]);
    command.env("LASTBYTE_NO_AUTH", "false");
    let mut daemon = Daemon::start(command);
    daemon.address();
    let answer = crate::bare_daemon::get_tcp(&daemon.address(), "/nothing", "");
    assert_eq!(answer, "HTTP/1.1 401 Unauthorized");
}

#[test]
fn a_client_finds_the_server_that_its_settings_name() {
    let (daemon, url) = daemon::Daemon::on_a_port();
    let id = daemon.result(&["start", "printf x"]);
    let elsewhere = daemon.fixture.home.path().join("nowhere").to_str().unwrap().to_owned();
    let token = state(&daemon.fixture).join("token");
    write_config(&daemon.fixture, &format!("server = {url:?}\ntoken-file = {token:?}"));
    let list = |arguments: &[&str], variable: &str, value: &str| {
        let mut command = daemon.lastbyte(&[&["ps", "--json"], arguments].concat());
        // The client can find it only by this setting.
        command.env_remove("XDG_RUNTIME_DIR").env("XDG_STATE_HOME", &elsewhere);
        command.env(variable, value);
        finish(command)
    };
    let listed = list(&[], "UNUSED", "");
    assert!(listed.stdout.contains(id.trim()), "by the file: {listed:?}");
    let listed = list(&[], "LASTBYTE_SOCKET", &elsewhere);
    assert!(listed.stderr.contains("nowhere"), "a socket in a variable wins: {listed:?}");
    let listed = list(&["--socket", &elsewhere], "LASTBYTE_SERVER", &url);
    assert!(listed.stderr.contains("nowhere"), "and a flag over both: {listed:?}");
    let token = list(&["--config", "/dev/null", "--token-file", "x"], "UNUSED", "");
    assert_eq!(token.code, Some(2), "{token:?}");
    assert!(token.stderr.contains("requires --server URL"), "{token:?}");
}

#[test]
fn a_server_that_start_starts_gets_the_same_settings() {
    let home = Home::new();
    let folder = home.fixture.home.path().to_owned();
    write_config(&home.fixture, "log = \"error\"\n");
    let here = folder.join("here");
    fs::create_dir(&here).unwrap();
    let mut command = home.fixture.lastbyte(&["start", "true"]);
    command.current_dir(&folder).env("LASTBYTE_WORKDIR", "here").env_remove("LASTBYTE_LOG");
    let first = finish(command).stderr;
    let pid = first.split("(pid ").nth(1).unwrap().split(')').next().unwrap();
    // Nobody can read the variables of a server, so a command tells its directory.
    let command = home.fixture.shell(
        "curl -sS --unix-socket \"$XDG_RUNTIME_DIR/lastbyte/socket\" http://localhost/v1/processes \
         -d '{\"shell\":\"pwd\",\"wait\":{\"exit\":true}}'",
    );
    let answer = finish(command).stdout;
    assert!(answer.contains(&format!("{}\\n", here.display())), "{answer}");
    let cmdline = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let cmdline = String::from_utf8_lossy(&cmdline);
    assert!(cmdline.contains("--config"), "{cmdline}");
    assert!(!cmdline.contains("--log"), "the file says how loud: {cmdline}");
}

/// Checks that the call is refused because of its configuration.
#[track_caller]
fn refused(fixture: &Fixture, arguments: &[&str], want: &str) {
    let finished = finish(fixture.lastbyte(arguments));
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
    assert!(finished.stderr.starts_with(&format!("lastbyte: {want}")), "{finished:?}");
}

#[test]
fn an_error_in_the_file_names_its_line() {
    let fixture = Fixture::new();
    let path = write_config(&fixture, "log = \"warn\"\nlisen = []\n");
    for command in [vec!["serve"], vec!["ps"], vec!["config", "show"]] {
        let want = format!("{}:2: unknown setting \"lisen\"; settings are ", path.display());
        refused(&fixture, &command, &want);
    }
    write_config(&fixture, "\n\nlisten = [\"localhost\"]\n");
    let want =
        format!("{}:3: invalid value 'localhost' for listen: expected IP:PORT", path.display());
    refused(&fixture, &["serve"], &want);
    refused(&fixture, &["config", "show"], &want);
}

#[test]
fn a_config_file_given_by_name_must_exist() {
    let fixture = Fixture::new();
    refused(&fixture, &["ps", "--config", "/no/such"], "cannot read config file /no/such");
    let finished = finish({
        let mut command = fixture.lastbyte(&["config", "show"]);
        command.env("LASTBYTE_CONFIG", "/no/such");
        command
    });
    assert_eq!(finished.code, Some(2), "{finished:?}");
}

#[test]
fn an_unreadable_default_file_is_an_error() {
    let fixture = Fixture::new();
    let path = write_config(&fixture, "");
    let want = format!("cannot read config file {}", path.display());
    fs::remove_file(&path).unwrap();
    symlink("nowhere", &path).unwrap();
    refused(&fixture, &["config", "show"], &want);
    let folder = path.parent().unwrap();
    fs::remove_dir_all(folder).unwrap();
    symlink(folder, folder).unwrap();
    refused(&fixture, &["config", "show"], &want);
    // A path below a file means that there is no config file.
    fs::remove_file(folder).unwrap();
    fs::write(folder, "").unwrap();
    assert_eq!(finish(fixture.lastbyte(&["config", "show"])).code, Some(0));
}

/// The file can name a command that the server runs.
#[test]
fn a_file_that_others_can_change_is_refused() {
    let fixture = Fixture::new();
    let ran = fixture.home.path().join("ran");
    let path = write_config(&fixture, &format!("env-hook = \"touch {}\"\n", ran.display()));
    let (file, folder) = (path.to_str().unwrap(), path.parent().unwrap().to_str().unwrap());
    let both = format!("{file} {folder}");
    for (of_file, of_folder, open) in
        [(0o620, 0o700, file), (0o602, 0o755, file), (0o600, 0o770, folder), (0o666, 0o777, &both)]
    {
        fs::set_permissions(file, Permissions::from_mode(of_file)).unwrap();
        fs::set_permissions(folder, Permissions::from_mode(of_folder)).unwrap();
        let want = format!(
            "cannot use config file {file}: other users could change what is run; \
             run `chmod go-w {open}`, or copy it to a directory of your own\n"
        );
        // A server that is not refused would keep running, so it is tried last.
        for call in [["config", "show"].as_slice(), &["ps"], &["start", "true"], &["serve"]] {
            refused(&fixture, call, &want);
        }
    }
    assert!(!ran.exists());
    fs::set_permissions(file, Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(folder, Permissions::from_mode(0o1777)).unwrap();
    assert_eq!(finish(fixture.lastbyte(&["config", "show"])).code, Some(0));
}

/// The file could also be replaced through a link's target, or through a folder above.
#[test]
fn a_file_that_others_can_replace_is_refused() {
    let fixture = Fixture::new();
    let home = fixture.home.path();
    let link = write_config(&fixture, "");
    let (above, below) = (home.join("above"), home.join("above/below"));
    fs::create_dir_all(&below).unwrap();
    fs::rename(&link, below.join("real.toml")).unwrap();
    symlink(below.join("real.toml"), &link).unwrap();
    for folder in [&above, &below, &home.join("config")] {
        fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(finish(fixture.lastbyte(&["config", "show"])).code, Some(0));
    for open in [&above, &below, &home.join("config")] {
        fs::set_permissions(open, Permissions::from_mode(0o775)).unwrap();
        let want = format!(
            "cannot use config file {}: other users could change what is run; \
             run `chmod go-w {}`, or copy it to a directory of your own\n",
            link.display(),
            open.display()
        );
        refused(&fixture, &["config", "show"], &want);
        fs::set_permissions(open, Permissions::from_mode(0o755)).unwrap();
    }
}

/// The call must not wait for a writer.
#[test]
fn a_file_that_is_not_utf_8_is_refused() {
    let fixture = Fixture::new();
    let path = write_config(&fixture, "");
    fs::write(&path, b"log = \"\xff\"\n").unwrap();
    let want = format!("cannot use config file {}: it is not UTF-8\n", path.display());
    refused(&fixture, &["ps"], &want);
}

#[test]
fn a_pipe_is_refused() {
    let fixture = Fixture::new();
    let path = write_config(&fixture, "");
    fs::remove_file(&path).unwrap();
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
    let want = format!("cannot use config file {}: not a regular", path.display());
    refused(&fixture, &["config", "show"], &want);
}

#[test]
fn secrets_are_not_shown() {
    let fixture = Fixture::new();
    let token = fixture.home.path().join("token");
    fs::write(&token, "the-token").unwrap();
    write_config(&fixture, &format!("env-hook = \"curl -u secret\"\ntoken-file = {token:?}\n"));
    for arguments in [vec!["config", "show"], vec!["config", "show", "--json"]] {
        let Finished { code, stdout, stderr } = finish(fixture.lastbyte(&arguments));
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
        assert!(stdout.contains("(set, and not shown)"), "{stdout}");
        assert!(!stdout.contains("secret") && !stdout.contains("the-token"), "{stdout}");
    }
}

#[test]
fn each_setting_is_shown_with_its_source() {
    let fixture = Fixture::new();
    let path = write_config(&fixture, "default-sandbox = \"read-only\"\n");
    let shown = finish(fixture.lastbyte(&["config", "show"])).stdout;
    assert!(shown.starts_with(&format!("file: {}\n\nSETTING ", path.display())), "{shown}");
    let line = shown.lines().find(|line| line.starts_with("default-sandbox")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words, ["default-sandbox", &format!("{}:1", path.display()), "read-only"]);
}

#[test]
fn a_file_whose_name_is_no_text_is_shown_as_far_as_it_is() {
    let fixture = Fixture::new();
    let usual = write_config(&fixture, "log = \"warn\"\n");
    let path = usual.with_file_name(OsStr::from_bytes(b"\xff.toml"));
    fs::rename(usual, &path).unwrap();
    for json in [None, Some("--json")] {
        let mut command = fixture.lastbyte(&["config", "show", "--config"]);
        command.arg(&path).args(json).env_remove("LASTBYTE_LOG");
        let Finished { code, stdout, stderr } = finish(command);
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
        assert!(stdout.contains("\u{fffd}.toml"), "{stdout}");
    }
}

#[test]
fn a_working_directory_that_does_not_exist_is_refused() {
    let fixture = Fixture::new();
    let want = "cannot use the working directory /no/such: No such file or directory";
    refused(&fixture, &["serve", "--workdir", "/no/such"], want);
    let not_one = "cannot use the working directory /dev/null: Not a directory";
    refused(&fixture, &["serve", "--workdir", "/dev/null"], not_one);
    let mut command = fixture.lastbyte(&["serve"]);
    command.env("LASTBYTE_WORKDIR", "/no/such");
    let finished = finish(command);
    assert!(finished.code == Some(2) && finished.stderr.contains(want), "{finished:?}");
    write_config(&fixture, "workdir = \"/no/such\"\n");
    for command in [vec!["serve"], vec!["config", "show"]] {
        refused(&fixture, &command, want);
    }
}

/// `config show` refuses what a server refuses.
#[test]
fn contradictory_settings_are_refused() {
    let fixture = Fixture::new();
    write_config(&fixture, "no-auth = true\nlisten = [\"0.0.0.0:1\"]\n");
    for command in [vec!["serve"], vec!["config", "show"]] {
        refused(&fixture, &command, "--no-auth lets anyone who can connect run commands");
    }
}
