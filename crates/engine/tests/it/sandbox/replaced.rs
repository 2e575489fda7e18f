//! A command cannot lead the next one out of its workspace by replacing it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lastbyte_engine::{
    Enforcement, EnforcementChoice, Engine, Launch, Sandbox, SandboxError, Settings, StartError,
    Status, Workspace,
};
use lastbyte_testkit::Anchor;

use super::{folder, run, shell};
use crate::enforcements::enforcements_here;
use crate::fixture::Fixture;
use crate::unprivileged::as_nobody;

/// Folders `area/work/sub` and `target`, and engines one after the other on one state folder.
struct Ground {
    state: PathBuf,
    enforcement: Enforcement,
    folder: tempfile::TempDir,
}

impl Ground {
    fn new(enforcement: Enforcement) -> Self {
        let folder = folder();
        fs::create_dir_all(folder.path().join("area/work/sub")).unwrap();
        fs::create_dir(folder.path().join("target")).unwrap();
        Self { state: folder.path().join("state"), enforcement, folder }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn engine(&self) -> Fixture {
        let settings = Settings {
            enforcement: EnforcementChoice::Only(self.enforcement),
            ..Settings::new(&self.state)
        };
        // The fixture's own folder is not used.
        let state = folder();
        Fixture { engine: Engine::new(settings).unwrap(), anchor: Anchor::listen(), state }
    }

    /// Adds uses of these roots at this time to the list, as they are now.
    fn record(&self, roots: &[&Path], at: SystemTime) {
        fs::create_dir_all(&self.state).unwrap();
        let file = self.state.join("sandbox-roots");
        let mut records = fs::read_to_string(&file).unwrap_or_default();
        let seconds = at.duration_since(UNIX_EPOCH).unwrap().as_secs();
        for root in roots {
            let used = fs::metadata(root).unwrap();
            let (major, minor) = (rustix::fs::major(used.dev()), rustix::fs::minor(used.dev()));
            let device = (u64::from(major) << 32) | u64::from(minor);
            records += &format!("{seconds} {device} {} {}\0", used.ino(), root.display());
        }
        fs::write(file, records).unwrap();
    }

    /// Runs this in `area`, as a command that can write all of it.
    async fn prepare(&self, text: &str) {
        let done = run(&self.engine(), shell(text, &self.at("area"))).await;
        assert_eq!(done, (Status::Exited(0), String::new()), "{:?}: {text}", self.enforcement);
    }

    /// The result of the next command, in another engine, that writes in this directory.
    async fn next(&self, cwd: &Path) -> Result<(), SandboxError> {
        let fixture = self.engine();
        match fixture.engine.start(shell("echo x > made", cwd)).await {
            Ok(started) => {
                let (status, text) = crate::fixture::finish_text(&started.process).await;
                assert_eq!(status, Status::Exited(0), "{text}");
                Ok(())
            }
            Err(StartError::Sandbox(error)) => Err(error),
            Err(other) => panic!("{other:?}"),
        }
    }
}

async fn links_are_refused() {
    let attacks = [
        ("mv work old && ln -s ../target work", "area/work", "area/work"),
        ("mv work old && ln -s ../target work", "area/work/.", "area/work"),
        ("mv work/sub old && ln -s ../../target work/sub", "area/work/sub", "area/work/sub"),
        ("mv work old && ln -s ../target/.. work", "area/work/target", "area/work"),
        ("rmdir work/sub && ln -s ../../target work/sub", "area/work/sub", "area/work/sub"),
        ("ln -s work/../../target new", "area/work/../new", "area/new"),
    ];
    for enforcement in enforcements_here() {
        for (attack, cwd, link) in attacks {
            let ground = Ground::new(enforcement);
            ground.next(&ground.at("area/work")).await.unwrap();
            ground.prepare(attack).await;
            let (path, link) = (ground.at(cwd), ground.at(link));
            let refused = ground.next(&path).await.unwrap_err();
            assert_eq!(refused, SandboxError::CwdLink { path, link }, "{enforcement:?}: {attack}");
            assert_eq!(fs::read_dir(ground.at("target")).unwrap().count(), 0);
        }
    }
}

#[tokio::test]
async fn a_link_that_a_command_made_is_refused_as_a_workspace() {
    links_are_refused().await;
}

#[tokio::test]
async fn an_unprivileged_server_refuses_a_link_that_a_command_made() {
    if as_nobody("sandbox::replaced::an_unprivileged_server_refuses_a_link_that_a_command_made") {
        links_are_refused().await;
    }
}

/// A root in addition to the working directory.
#[tokio::test]
async fn a_link_that_a_command_made_is_refused_as_a_root() {
    for enforcement in enforcements_here() {
        let ground = Ground::new(enforcement);
        ground.prepare("ln -s ../target link").await;
        let (path, cwd) = (ground.at("area/link"), ground.at("area/work"));
        let launch = shell("echo x > ../../target/made", &cwd);
        let Sandbox::WorkspaceWrite(workspace) = launch.sandbox else { unreachable!() };
        let roots = vec![path.clone()];
        let sandbox = Sandbox::WorkspaceWrite(Workspace { roots, ..workspace });
        let refused = ground.engine().engine.start(Launch { sandbox, ..launch }).await.unwrap_err();
        let want = SandboxError::RootLink { link: path.clone(), path };
        assert!(matches!(&refused, StartError::Sandbox(error) if *error == want), "{refused:?}");
    }
}

/// Every workspace policy can write `/tmp`, so no link in it is followed.
#[tokio::test]
async fn a_link_in_tmp_is_refused_as_a_workspace() {
    let ground = Ground::new(Enforcement::Landlock);
    let tmp = tempfile::tempdir_in("/tmp").unwrap();
    let path = tmp.path().join("w");
    std::os::unix::fs::symlink(ground.at("target"), &path).unwrap();
    let refused = ground.next(&path).await.unwrap_err();
    assert_eq!(refused, SandboxError::CwdLink { link: path.clone(), path });
}

/// Folders created just before the first use count as newer: times are compared in seconds.
#[tokio::test]
async fn an_older_folder_in_place_of_a_workspace_is_refused() {
    for enforcement in enforcements_here() {
        let ground = Ground::new(enforcement);
        fs::create_dir(ground.at("area/other")).unwrap();
        let work = ground.at("area/work");
        ground.record(&[&work, &ground.at("area")], in_a_minute());
        ground.next(&work).await.unwrap();
        ground.prepare("mv work old && mv other work").await;
        let refused = ground.next(&work).await.unwrap_err();
        assert_eq!(refused, SandboxError::RootReplaced { path: work }, "{enforcement:?}");
    }
}

#[tokio::test]
async fn the_original_workspace_is_accepted_again_and_an_older_one_is_not() {
    for enforcement in enforcements_here() {
        let ground = Ground::new(enforcement);
        let (work, area) = (ground.at("area/work"), ground.at("area"));
        // The first folder was used at once, and the second a minute later.
        ground.record(&[&area, &work], SystemTime::now());
        ground.prepare("mv work old && mkdir work").await;
        ground.record(&[&work], in_a_minute());
        ground.next(&work).await.unwrap();
        ground.prepare("rm -r work && mv old work").await;
        assert_eq!(ground.next(&work).await, Ok(()), "{enforcement:?}");
        // With a first use in the future every new folder is older, even one that was used later.
        fs::remove_file(ground.state.join("sandbox-roots")).unwrap();
        ground.record(&[&area, &work], in_a_minute());
        ground.prepare("mv work old && mkdir work").await;
        ground.record(&[&work], in_a_minute());
        let refused = ground.next(&work).await;
        let path = work.clone();
        assert_eq!(refused, Err(SandboxError::RootReplaced { path }), "{enforcement:?}");
        ground.prepare("rm -r work && mv old work").await;
        assert_eq!(ground.next(&work).await, Ok(()), "{enforcement:?}");
    }
}

fn in_a_minute() -> SystemTime {
    SystemTime::now() + Duration::from_secs(60)
}

#[tokio::test]
async fn a_newly_created_workspace_is_accepted() {
    for enforcement in enforcements_here() {
        let ground = Ground::new(enforcement);
        let work = ground.at("area/work");
        for _ in 0..3 {
            ground.next(&work).await.unwrap();
            ground.prepare("rm -r work && mkdir work").await;
            ground.next(&work).await.unwrap();
            fs::remove_dir_all(&work).unwrap();
            fs::create_dir(&work).unwrap();
        }
    }
}
