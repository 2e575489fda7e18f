//! A command cannot end the protection of a file by closing a folder on the way to it (`chmod 0`).

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use lastbyte_engine::{
    Enforcement, Errno, Launch, Network, Sandbox, SandboxError, Settings, StartError, Status,
};

use super::{fixture_with, folder, run, shell};
use crate::enforcements::with_mounts;
use crate::fixture::Fixture;
use crate::unprivileged::as_nobody;

/// A folder that commands can write, with a home in it.
struct Area {
    folder: tempfile::TempDir,
    enforcement: Enforcement,
}

impl Area {
    fn new(enforcement: Enforcement) -> Self {
        let area = Self { folder: folder(), enforcement };
        fs::create_dir(area.at("home")).unwrap();
        area
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), "own\n").unwrap();
    }

    fn set_mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.at(path), Permissions::from_mode(mode)).unwrap();
    }

    fn server(&self) -> Fixture {
        self.server_with(|_| {})
    }

    fn server_with(&self, change: impl FnOnce(&mut Settings)) -> Fixture {
        fixture_with(self.enforcement, |settings| {
            settings.homes = Some(vec![self.at("home")]);
            change(settings);
        })
    }

    /// One command closes the folder. The next ones open it again, or put another in its place.
    async fn attack(&self, server: &Fixture, closed: &str, target: &str) {
        let cwd = self.at(if closed.starts_with("home/") { "home" } else { "" });
        let name = self.at(closed).strip_prefix(&cwd).unwrap().display().to_string();
        let file = self.at(target).strip_prefix(&cwd).unwrap().display().to_string();
        let again = format!("mkdir -p $(dirname {file}) && echo evil > {file}");
        let attempts = [
            format!("chmod 755 {name}; echo evil >> {file}"),
            format!("mv {name} moved && {again}"),
            format!("rmdir {name}; rm -rf {name}; {again}"),
        ];
        let (status, text) = run(server, shell(&format!("chmod 0 {name}"), &cwd)).await;
        assert_eq!(status, Status::Exited(0), "{closed}: {text}");
        for attempt in attempts {
            let (status, _) = run(server, shell(&attempt, &cwd)).await;
            assert_ne!(status, Status::Exited(0), "{:?}: {attempt}", self.enforcement);
        }
        self.set_mode(closed, 0o755);
        assert_eq!(fs::read_to_string(self.at(target)).unwrap(), "own\n", "{closed}");
    }
}

async fn closed_folders_are_protected() {
    let cases = [
        (Some((".bashrc", "dotfiles/bashrc")), "home/dotfiles", "home/dotfiles/bashrc"),
        (Some((".ssh", "dotfiles/ssh")), "home/dotfiles", "home/dotfiles/ssh/authorized_keys"),
        (Some((".ssh", "a/b/ssh")), "home/a/b", "home/a/b/ssh/authorized_keys"),
        (None, "home/.cargo", "home/.cargo/bin/cargo"),
        (None, "home/.local/share", "home/.local/share/systemd/user/x.service"),
        // The command can write the folder above the home.
        (None, "home", "home/.bashrc"),
    ];
    for enforcement in with_mounts() {
        for (link, closed, target) in cases {
            let area = Area::new(enforcement);
            area.write(target);
            if let Some((name, to)) = link {
                symlink(to, area.at("home").join(name)).unwrap();
            }
            area.attack(&area.server(), closed, target).await;
        }
    }
}

#[tokio::test]
async fn a_closed_folder_with_startup_files_stays_protected() {
    closed_folders_are_protected().await;
}

#[tokio::test]
async fn an_unprivileged_server_protects_a_closed_folder_with_startup_files() {
    let test = "sandbox::closed::\
                an_unprivileged_server_protects_a_closed_folder_with_startup_files";
    if as_nobody(test) {
        closed_folders_are_protected().await;
    }
}

#[tokio::test]
async fn an_unprivileged_server_protects_a_home_in_a_closed_folder() {
    if !as_nobody("sandbox::closed::an_unprivileged_server_protects_a_home_in_a_closed_folder") {
        return;
    }
    for enforcement in with_mounts() {
        let area = Area::new(enforcement);
        area.write("home/inner/.bashrc");
        let server =
            area.server_with(|settings| settings.homes = Some(vec![area.at("home/inner")]));
        area.attack(&server, "home", "home/inner/.bashrc").await;
    }
}

#[tokio::test]
async fn an_unprivileged_server_protects_its_config_file_in_a_closed_folder() {
    let test = "sandbox::closed::\
                an_unprivileged_server_protects_its_config_file_in_a_closed_folder";
    if !as_nobody(test) {
        return;
    }
    for enforcement in with_mounts() {
        let area = Area::new(enforcement);
        area.write("work/conf/lb.toml");
        let config = area.at("work/conf/lb.toml");
        let server = area.server_with(|settings| settings.protected = vec![config]);
        area.attack(&server, "work/conf", "work/conf/lb.toml").await;
    }
}

/// What cannot be protected is not left unprotected.
#[tokio::test]
async fn an_unprivileged_server_refuses_a_home_in_which_it_can_protect_nothing() {
    let test = "sandbox::closed::\
                an_unprivileged_server_refuses_a_home_in_which_it_can_protect_nothing";
    if !as_nobody(test) {
        return;
    }
    for enforcement in with_mounts() {
        // In the first nothing can be found, in the second nothing can be created.
        for mode in [0o000, 0o555] {
            let area = Area::new(enforcement);
            area.set_mode("home", mode);
            let refused = refused(&area.server(), shell("chmod 755 .", &area.at("home"))).await;
            let (path, errno) = (area.at("home/.config"), Errno::ACCESS);
            assert_eq!(refused, SandboxError::Protect { path, errno }, "{enforcement:?} {mode:o}");
            area.set_mode("home", 0o755);
        }
        // A folder of another user, which a command cannot open either.
        let server =
            fixture_with(enforcement, |settings| settings.homes = Some(vec!["/usr/lib".into()]));
        let (status, text) = run(&server, shell("! touch .bashrc", Path::new("/usr/lib"))).await;
        assert_eq!(status, Status::Exited(0), "{enforcement:?}: {text}");
    }
}

/// To go on would be unsafe: a server that keeps its state elsewhere does not know the former roots.
#[tokio::test]
async fn an_unprivileged_server_says_which_closed_folder_keeps_it_from_its_own() {
    let test = "sandbox::closed::\
                an_unprivileged_server_says_which_closed_folder_keeps_it_from_its_own";
    if !as_nobody(test) {
        return;
    }
    for enforcement in with_mounts() {
        let area = Area::new(enforcement);
        let (closed, work) = (area.at("home/.local"), area.at("work"));
        let (state, roots) = (closed.join("state/lastbyte"), closed.join("state/sandbox-roots"));
        fs::create_dir_all(&state).unwrap();
        fs::create_dir(&work).unwrap();
        let read_only = || {
            let sandbox = Sandbox::ReadOnly { network: Network::Off };
            Launch { sandbox, ..shell("true", &work) }
        };
        let hiding = area.server_with(|settings| settings.hidden = vec![state.clone()]);
        let recording = area.server_with(|settings| settings.sandbox_roots = roots.clone());
        let (status, text) = run(&hiding, shell("chmod 0 .local", &area.at("home"))).await;
        assert_eq!(status, Status::Exited(0), "{enforcement:?}: {text}");
        for (server, path) in [(hiding, state), (recording, roots)] {
            let want = SandboxError::OwnUnreachable { path, closed: closed.clone() };
            assert_eq!(refused(&server, read_only()).await, want, "{enforcement:?}");
            let hint = format!("run `chmod u+rwx {}`", closed.display());
            assert!(want.to_string().contains(&hint), "{want}");
        }
        area.set_mode("home/.local", 0o755);
    }
}

#[tokio::test]
async fn a_config_file_that_a_command_could_create_is_an_error() {
    for enforcement in with_mounts() {
        let area = Area::new(enforcement);
        fs::create_dir(area.at("work")).unwrap();
        for (path, errno) in
            [(area.at("work/conf/lb.toml"), Errno::NOENT), (area.at("lb.toml"), Errno::NOENT)]
        {
            let server = area.server_with(|settings| settings.protected = vec![path.clone()]);
            let refused = refused(&server, shell("true", &area.at(""))).await;
            assert_eq!(refused, SandboxError::Protect { path, errno }, "{enforcement:?}");
        }
        let elsewhere = vec![area.at("home/lb.toml")];
        let server = area.server_with(|settings| settings.protected = elsewhere);
        let (status, text) = run(&server, shell("true", &area.at("work"))).await;
        assert_eq!(status, Status::Exited(0), "{text}");
    }
}

/// A command could replace the file by a folder.
#[tokio::test]
async fn a_file_in_place_of_a_folder_with_startup_files_is_protected() {
    for enforcement in with_mounts() {
        let area = Area::new(enforcement);
        area.write("home/.local");
        area.write("home/file");
        symlink("file/bashrc", area.at("home/.bashrc")).unwrap();
        let text = "for name in .local file .bashrc; do rm $name && echo removed $name; \
                    mv $name x && echo moved $name; done 2>/dev/null; touch made";
        let (status, text) = run(&area.server(), shell(text, &area.at("home"))).await;
        assert_eq!((status, text.as_str()), (Status::Exited(0), ""), "{enforcement:?}");
        let hidden = area.at("home/file/lastbyte");
        let server = area.server_with(|settings| settings.hidden = vec![hidden.clone()]);
        let refused = refused(&server, shell("true", &area.at("home"))).await;
        let want = SandboxError::Protect { path: hidden, errno: Errno::NOTDIR };
        assert_eq!(refused, want, "{enforcement:?}");
    }
}

async fn refused(server: &Fixture, launch: Launch) -> SandboxError {
    match server.engine.start(launch).await {
        Err(StartError::Sandbox(error)) => error,
        other => panic!("{other:?}"),
    }
}
