//! A home folder as a workspace: startup files cannot be changed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use lastbyte_engine::{
    Enforcement, Launch, Needs, Sandbox, SandboxError, StartError, StartupFiles, Status, Workspace,
};

use super::{fixture_with, folder, run, shell};
use crate::enforcements::with_mounts;
use crate::fixture::Fixture;
use crate::unprivileged::as_nobody;

/// A home in a writable area, with the server's settings in it.
struct Home {
    area: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let area = folder();
        fs::create_dir(area.path().join("home")).unwrap();
        Self { area }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.area.path().join("home").join(path)
    }

    fn server(&self, enforcement: Enforcement) -> Fixture {
        fixture_with(enforcement, |settings| {
            settings.homes = Some(vec![self.at("")]);
            settings.hidden = vec![self.at(".config/lastbyte")];
        })
    }

    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.at("")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn allow(launch: Launch) -> Launch {
    let Sandbox::WorkspaceWrite(workspace) = launch.sandbox else { unreachable!() };
    let sandbox =
        Sandbox::WorkspaceWrite(Workspace { startup_files: StartupFiles::Writable, ..workspace });
    Launch { sandbox, ..launch }
}

/// Each line must fail; the shell prints which did not.
const ATTEMPTS: &str = "
    fails() { if \"$@\" 2>/dev/null; then echo \"worked: $*\"; fi; }
    cd $AREA/home
    for name in .bashrc .profile .bash_profile .gitconfig; do
        fails sh -c \"echo x >> $name\"
        fails rm -f $name
        fails mv $name moved
        echo x > other; fails mv other $name
        fails ln -sf other $name
    done
    for name in .ssh .config .local/bin .local/share/systemd .local/share/dbus-1 \
        .local/share/applications; do
        fails touch $name/x
        fails mkdir $name/y
        fails mv $name moved
        fails rm -rf $name
    done
    fails mv .local moved
    fails mv .local/share moved
    fails sh -c 'mkdir -p .config/lastbyte; echo x > .config/lastbyte/config.toml'
    fails sh -c 'mkdir -p .config/autostart && echo x > .config/autostart/x.desktop'
    fails mv $AREA/home $AREA/moved
    touch made && mkdir -p project .cache .local/share && echo done";

async fn startup_files_are_protected(prepare: impl Fn(&Home)) {
    for enforcement in with_mounts() {
        // The home itself, and a folder that contains it.
        for root in ["", ".."] {
            let home = Home::new();
            prepare(&home);
            let text = ATTEMPTS.replace("$AREA", home.area.path().to_str().unwrap());
            let launch = shell(&text, &home.at(root));
            let (status, text) = run(&home.server(enforcement), launch).await;
            assert_eq!((status, text.as_str()), (Status::Exited(0), "done\n"), "{enforcement:?}");
            let entries = home.entries();
            assert!(entries.contains(&"made".into()), "{entries:?}");
        }
    }
}

/// Missing files are created with harmless contents.
#[tokio::test]
async fn missing_startup_files_cannot_be_created() {
    startup_files_are_protected(|_| {}).await;
}

#[tokio::test]
async fn an_unprivileged_server_protects_missing_startup_files() {
    if as_nobody("sandbox::startup_files::an_unprivileged_server_protects_missing_startup_files") {
        startup_files_are_protected(|_| {}).await;
    }
}

#[tokio::test]
async fn existing_startup_files_cannot_be_written() {
    startup_files_are_protected(|home| {
        for name in [".bashrc", ".profile", ".bash_profile", ".gitconfig"] {
            fs::write(home.at(name), "own\n").unwrap();
        }
        for name in [".ssh", ".config/lastbyte", ".local/bin"] {
            fs::create_dir_all(home.at(name)).unwrap();
        }
    })
    .await;
}

/// As for users who keep these files in a repository.
#[tokio::test]
async fn neither_a_linked_startup_file_nor_its_target_can_be_written() {
    startup_files_are_protected(|home| {
        fs::create_dir_all(home.at("dotfiles/config")).unwrap();
        fs::write(home.at("dotfiles/bashrc"), "own\n").unwrap();
        symlink("dotfiles/bashrc", home.at(".bashrc")).unwrap();
        symlink("dotfiles/config", home.at(".config")).unwrap();
    })
    .await;
    for enforcement in with_mounts() {
        let home = Home::new();
        fs::create_dir(home.at("dotfiles")).unwrap();
        fs::write(home.at("dotfiles/bashrc"), "own\n").unwrap();
        symlink("dotfiles/bashrc", home.at(".bashrc")).unwrap();
        let text =
            "cat .bashrc; ! echo x >> dotfiles/bashrc && ! mv dotfiles x && touch dotfiles/y";
        let (status, text) = run(&home.server(enforcement), shell(text, &home.at(""))).await;
        assert!(status == Status::Exited(0) && text.starts_with("own\n"), "{text}");
    }
}

/// A command could put a folder with startup files in place of the link.
#[tokio::test]
async fn a_link_that_leads_to_a_home_cannot_be_replaced() {
    for enforcement in with_mounts() {
        let (home, elsewhere) = (Home::new(), folder());
        for target in [home.at(""), elsewhere.path().to_owned()] {
            let link = home.area.path().join("link");
            symlink(&target, &link).unwrap();
            let server =
                fixture_with(enforcement, |settings| settings.homes = Some(vec![link.clone()]));
            let text = "! rm link && ! mv link x && ! ln -sfn /x link && touch made";
            let (status, text) = run(&server, shell(text, home.area.path())).await;
            assert_eq!(status, Status::Exited(0), "{enforcement:?}: {text}");
            assert_eq!(fs::read_link(&link).unwrap(), target);
            fs::remove_file(&link).unwrap();
        }
    }
}

#[tokio::test]
async fn the_option_allows_all_but_the_servers_own_settings() {
    for enforcement in with_mounts() {
        let home = Home::new();
        let text = "echo x > .bashrc && mkdir .ssh && mkdir -p .config/autostart && \
                    ! echo x > .config/lastbyte/config.toml && ! mv .config gone";
        let launch = allow(shell(text, &home.at("")));
        let (status, text) = run(&home.server(enforcement), launch).await;
        assert_eq!(status, Status::Exited(0), "{enforcement:?}: {text}");
        assert_eq!(fs::read_to_string(home.at(".bashrc")).unwrap(), "x\n");
        assert!(!home.at(".profile").exists(), "nothing is made that is not protected");
        assert_eq!(fs::read_dir(home.at(".config/lastbyte")).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn the_servers_config_file_is_protected_wherever_it_is() {
    for enforcement in with_mounts() {
        let work = folder();
        fs::create_dir(work.path().join("etc")).unwrap();
        let config = work.path().join("etc/lastbyte.toml");
        fs::write(&config, "own").unwrap();
        let server =
            fixture_with(enforcement, |settings| settings.protected = vec![config.clone()]);
        let text = "! echo x > etc/lastbyte.toml && ! rm etc/lastbyte.toml && ! mv etc gone && \
                    echo x > etc/other && cat etc/lastbyte.toml";
        let (status, text) = run(&server, allow(shell(text, work.path()))).await;
        assert!(status == Status::Exited(0) && text.ends_with("own"), "{enforcement:?}: {text}");
    }
}

#[tokio::test]
async fn a_root_that_is_a_startup_folder_can_be_written() {
    for enforcement in with_mounts() {
        let home = Home::new();
        fs::create_dir_all(home.at(".config/app")).unwrap();
        let launch = shell("touch here", &home.at(".config/app"));
        let (status, text) = run(&home.server(enforcement), launch).await;
        assert_eq!(status, Status::Exited(0), "{enforcement:?}: {text}");
        assert_eq!(home.entries(), [".config"], "nothing else is touched");
    }
}

#[tokio::test]
async fn a_login_shell_reads_the_same_files_as_before() {
    let home = Home::new();
    fs::write(home.at(".profile"), "echo from the profile\n").unwrap();
    let enforcement = with_mounts().next().unwrap_or(Enforcement::Landlock);
    let server = home.server(enforcement);
    let launch = shell("true", &home.at(""));
    if enforcement == Enforcement::Landlock {
        return assert!(server.engine.start(launch).await.is_err(), "nothing can be protected");
    }
    run(&server, launch).await;
    assert!(home.at(".bash_profile").exists());
    let set_home = lastbyte_engine::EnvEdit::Set("HOME".into(), home.at("").into());
    let login = Launch { env: vec![set_home], ..Launch::argv(["bash", "-lc", "true"]) };
    assert_eq!(run(&server, login).await, (Status::Exited(0), "from the profile\n".into()));
}

/// Landlock can neither protect a part of a root nor prevent that something is created in it.
#[tokio::test]
async fn without_mounts_a_home_is_refused_as_a_workspace() {
    let home = Home::new();
    let server = home.server(Enforcement::Landlock);
    let refused = async |launch: Launch| match server.engine.start(launch).await {
        Err(StartError::Sandbox(SandboxError::NeedsNamespaces { needs })) => needs,
        other => panic!("{other:?}"),
    };
    let path = home.at(".config");
    assert_eq!(refused(shell("true", &home.at(""))).await, Needs::StartupFiles { path });
    let path = home.at(".config/lastbyte");
    assert_eq!(refused(allow(shell("true", &home.at("")))).await, Needs::HiddenInRoot { path });
    assert_eq!(home.entries(), Vec::<String>::new(), "nothing is made for nothing");
    fs::create_dir(home.at("project")).unwrap();
    let (status, text) = run(&server, shell("echo x > here", &home.at("project"))).await;
    assert_eq!(status, Status::Exited(0), "{text}");
}

/// Programs in it are on the path of users of Rust.
#[tokio::test]
async fn the_programs_of_cargo_are_protected_if_cargo_has_a_folder() {
    for enforcement in with_mounts() {
        let home = Home::new();
        let server = home.server(enforcement);
        let text = "mkdir -p .cargo/bin && echo x > .cargo/bin/cargo";
        fs::create_dir(home.at(".cargo")).unwrap();
        let (status, text) = run(&server, shell(text, &home.at(""))).await;
        assert_ne!(status, Status::Exited(0), "{enforcement:?}: {text}");
        assert_eq!(fs::read_dir(home.at(".cargo/bin")).unwrap().count(), 0);
        let without = Home::new();
        run(&without.server(enforcement), shell("true", &without.at(""))).await;
        assert!(!without.at(".cargo").exists());
    }
}

/// With a config folder at this path; `link` leads to `config`.
async fn config_home_is_protected(config_home: &str, prepare: impl Fn(&Home)) {
    for enforcement in with_mounts() {
        let home = Home::new();
        prepare(&home);
        let config = home.area.path().join(config_home);
        let server = || {
            fixture_with(enforcement, |settings| {
                settings.homes = Some(vec![]);
                settings.config_home = Some(config.clone());
            })
        };
        let text = format!(
            "mkdir -p $(dirname {config_home}/git); \
             mkdir {config_home}/git || echo x > {config_home}/x || mv {config_home} gone || \
             rm {config_home} || rmdir {config_home} && echo worked; touch made"
        );
        let launch = shell(&format!("({text}) 2>/dev/null"), home.area.path());
        let got = run(&server(), launch).await;
        assert_eq!(got, (Status::Exited(0), String::new()), "{enforcement:?}");
        assert_eq!(fs::read_dir(&config).unwrap().count(), 0, "{enforcement:?}");
        let allowed = allow(shell(&format!("echo x > {config_home}/x"), home.area.path()));
        assert_eq!(run(&server(), allowed).await, (Status::Exited(0), String::new()));
        let as_root = shell("echo x > y", &config.canonicalize().unwrap());
        assert_eq!(run(&server(), as_root).await, (Status::Exited(0), String::new()));
    }
}

#[tokio::test]
async fn the_folder_that_xdg_config_home_names_is_protected() {
    config_home_is_protected("home/my/config", |_| {}).await;
    config_home_is_protected("config", |home| {
        fs::create_dir(home.area.path().join("config")).unwrap();
    })
    .await;
    config_home_is_protected("link", |home| {
        fs::create_dir(home.area.path().join("config")).unwrap();
        symlink("config", home.area.path().join("link")).unwrap();
    })
    .await;
}

/// In a folder that cannot be written it is neither created nor needed.
#[tokio::test]
async fn an_xdg_config_home_outside_of_the_roots_is_left_alone() {
    let home = Home::new();
    fs::create_dir(home.area.path().join("work")).unwrap();
    let server = fixture_with(Enforcement::Landlock, |settings| {
        settings.homes = Some(vec![]);
        settings.config_home = Some(home.at("config"));
    });
    let (status, text) = run(&server, shell("true", &home.area.path().join("work"))).await;
    assert_eq!(status, Status::Exited(0), "{text}");
    assert_eq!(home.entries(), Vec::<String>::new());
}

/// The page lists exactly what is protected: first what is created if it is missing, then the rest.
#[test]
fn docs_security_lists_exactly_the_startup_files() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sandbox/startup_files.rs");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
    let (source, page) = (fs::read_to_string(source).unwrap(), fs::read_to_string(page).unwrap());
    let list = source.split_once("STARTUP_FILES: [").unwrap().1.split_once("];").unwrap().0;
    let entries = list.lines().filter(|line| line.contains('"'));
    let (left, made): (Vec<&str>, Vec<&str>) = entries.partition(|line| line.contains("::Leave"));
    let names = |lines: Vec<&str>| -> BTreeSet<String> {
        lines.iter().map(|line| line.split('"').nth(1).unwrap().to_owned()).collect()
    };
    let on_page = page.split_once("- Created if missing").unwrap().1.split_once("\n\n").unwrap().0;
    let (created, rest) = on_page.split_once("- Only if they exist").unwrap();
    let quoted = |text: &str| -> BTreeSet<String> {
        text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    assert_eq!(quoted(created), names(made));
    assert_eq!(quoted(rest), names(left));
}
