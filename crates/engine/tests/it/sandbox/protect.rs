//! Protected paths and the server's own folders inside of a root.

use std::fs;

use lastbyte_engine::{Launch, Sandbox, Status, Workspace};

use super::{fixture, fixture_with, folder, run, shell};
use crate::enforcements::with_mounts;

/// Each line must fail; the shell prints which did not.
const AGAINST_PROTECTED: &str = "
    fails() { if \"$@\" 2>/dev/null; then echo \"worked: $*\"; fi; }
    fails touch a/b/kept/new
    fails rm a/b/kept/file
    fails chmod 777 a/b/kept
    fails mv a/b/kept a/b/gone
    fails mv a/b a/gone
    fails mv a gone
    fails rm -r a/b/kept
    fails ln a/b/kept/file linked
    fails mv a/b/kept/file moved
    fails mv other a/b/kept
    fails sh -c 'echo x > a/b/kept/file'
    fails sh -c 'echo x > alias/file'
    fails sh -c 'echo x > /proc/self/cwd/a/b/kept/file'
    touch a/b/new a/new && cat a/b/kept/file && echo done";

#[tokio::test]
async fn protected_paths_can_be_neither_changed_nor_moved() {
    for enforcement in with_mounts() {
        let (fixture, folder) = (fixture(enforcement), folder());
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("a/b/kept")).unwrap();
        fs::create_dir(at("other")).unwrap();
        fs::write(at("a/b/kept/file"), "kept\n").unwrap();
        std::os::unix::fs::symlink("a/b/kept", at("alias")).unwrap();
        let launch = shell(AGAINST_PROTECTED, folder.path());
        let Sandbox::WorkspaceWrite(workspace) = launch.sandbox else { unreachable!() };
        let protect = vec![at("a/b/kept")];
        let sandbox = Sandbox::WorkspaceWrite(Workspace { protect, ..workspace });
        let (status, text) = run(&fixture, Launch { sandbox, ..launch }).await;
        assert_eq!((status, text.as_str()), (Status::Exited(0), "kept\ndone\n"), "{enforcement:?}");
    }
}

/// A home directory as a root, with the server's state somewhere in it.
#[tokio::test]
async fn the_servers_own_folder_cannot_be_seen_or_moved_in_a_root() {
    for enforcement in with_mounts() {
        let folder = folder();
        let hidden = folder.path().join("state/server");
        fs::create_dir_all(&hidden).unwrap();
        fs::write(hidden.join("token"), "secret").unwrap();
        let fixture = fixture_with(enforcement, |settings| settings.hidden = vec![hidden.clone()]);
        let text = "ls -A state/server; cat state/server/token; mv state gone; \
                    mv state/server state/gone; rmdir state/server; touch state/server/x; \
                    touch state/new && echo done";
        let launch = shell(&format!("({text}) 2>/dev/null"), folder.path());
        let (status, text) = run(&fixture, launch).await;
        assert_eq!((status, text.as_str()), (Status::Exited(0), "done\n"), "{enforcement:?}");
        assert_eq!(fs::read_to_string(hidden.join("token")).unwrap(), "secret");
    }
}
