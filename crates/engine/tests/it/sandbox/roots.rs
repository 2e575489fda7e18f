//! Which folders are roots.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use lastbyte_engine::{EnvEdit, Launch, Sandbox, Status, Workspace};

use super::{fixture, folder, run, shell};
use crate::enforcements::enforcements_here;

#[tokio::test]
async fn a_root_that_is_a_link_means_its_target() {
    for enforcement in enforcements_here() {
        let (fixture, folder) = (fixture(enforcement), folder());
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        let launch = shell("pwd -P; echo x > here && ! echo x > ../there", &link);
        let (status, text) = run(&fixture, launch).await;
        assert_eq!(status, Status::Exited(0), "{enforcement:?}: {text}");
        assert!(text.starts_with(real.to_str().unwrap()), "{text}");
        assert!(real.join("here").exists());
    }
}

/// A ruleset is kept between commands, and identifies files by inode.
#[tokio::test]
async fn a_newly_created_root_can_be_written() {
    for enforcement in enforcements_here() {
        let (fixture, folder) = (fixture(enforcement), folder());
        let root = folder.path().join("root");
        for round in 0..5 {
            fs::create_dir(&root).unwrap();
            let (status, text) = run(&fixture, shell("echo x > here", &root)).await;
            assert_eq!(status, Status::Exited(0), "{enforcement:?}, {round}: {text}");
            fs::remove_dir_all(&root).unwrap();
        }
    }
}

#[tokio::test]
async fn tmpdir_is_a_root_unless_excluded() {
    for enforcement in enforcements_here() {
        let (fixture, cwd, tmp) = (fixture(enforcement), folder(), folder());
        for (tmpdir, code) in [(true, 0), (false, 2)] {
            let workspace = Workspace { tmpdir, slash_tmp: false, ..Workspace::default() };
            let launch = Launch {
                sandbox: Sandbox::WorkspaceWrite(workspace),
                env: vec![EnvEdit::Set("TMPDIR".into(), tmp.path().into())],
                ..shell("echo x > $TMPDIR/here", cwd.path())
            };
            let (status, text) = run(&fixture, launch).await;
            assert_eq!(status, Status::Exited(code), "{enforcement:?}: {text}");
        }
    }
}

/// Also at the first use of a workspace, which may already contain such a link.
#[tokio::test]
async fn a_tmpdir_behind_a_link_in_the_workspace_is_not_a_root() {
    for enforcement in enforcements_here() {
        for way in ["tmp", "tmp/.", "sub/../tmp", "sub/up/tmp"] {
            let (fixture, cwd, target) = (fixture(enforcement), folder(), folder());
            fs::create_dir(cwd.path().join("sub")).unwrap();
            symlink(target.path(), cwd.path().join("tmp")).unwrap();
            symlink("..", cwd.path().join("sub/up")).unwrap();
            let workspace = Workspace { slash_tmp: false, ..Workspace::default() };
            let launch = Launch {
                sandbox: Sandbox::WorkspaceWrite(workspace),
                env: vec![EnvEdit::Set("TMPDIR".into(), cwd.path().join(way).into())],
                ..shell("echo x > here && ! echo x > $TMPDIR/there", cwd.path())
            };
            let (status, text) = run(&fixture, launch).await;
            assert_eq!(status, Status::Exited(0), "{enforcement:?}, {way}: {text}");
            assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0, "{enforcement:?}, {way}");
        }
    }
}

/// The one way to a setgid mode, which docs/security.md names: the kernel sets it, not a call.
#[tokio::test]
async fn a_folder_in_a_setgid_folder_inherits_the_bit_and_a_file_does_not() {
    for enforcement in enforcements_here() {
        let (fixture, folder) = (fixture(enforcement), folder());
        let mode = |path: &str| fs::metadata(folder.path().join(path)).unwrap().mode() & 0o7000;
        fs::set_permissions(folder.path(), Permissions::from_mode(0o2755)).unwrap();
        assert_eq!(mode(""), 0o2000, "the folder of the test is setgid");
        let text = "mkdir made && echo x > file && echo x > made/file && ! chmod g+s made/file";
        let (status, text) = run(&fixture, shell(text, folder.path())).await;
        assert_eq!(status, Status::Exited(0), "{enforcement:?}: {text}");
        assert_eq!((mode("file"), mode("made/file")), (0, 0), "{enforcement:?}");
        assert_eq!(mode("made"), 0o2000, "{enforcement:?}");
    }
}

#[tokio::test]
async fn mounts_in_a_root_can_be_written_unless_they_are_read_only() {
    let test = "sandbox::roots::\
                mounts_in_a_root_can_be_written_unless_they_are_read_only";
    if !lastbyte_testkit::inside(test, &["--mount"]) {
        return;
    }
    for enforcement in enforcements_here() {
        let (fixture, folder) = (fixture(enforcement), folder());
        let script = "mkdir rw ro && mount -t tmpfs none rw && mount -t tmpfs -o ro none ro";
        let mounted = Launch { sandbox: Sandbox::FullAccess, ..shell(script, folder.path()) };
        assert_eq!(run(&fixture, mounted).await, (Status::Exited(0), String::new()));
        let launch = shell("echo x > rw/here && ! echo x > ro/here", folder.path());
        let (status, text) = run(&fixture, launch).await;
        assert_eq!(status, Status::Exited(0), "{enforcement:?}: {text}");
        let unmount =
            Launch { sandbox: Sandbox::FullAccess, ..shell("umount rw ro", folder.path()) };
        assert_eq!(run(&fixture, unmount).await, (Status::Exited(0), String::new()));
    }
}
