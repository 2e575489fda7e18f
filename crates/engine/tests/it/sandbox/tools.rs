//! Ordinary tools work in a workspace without a network. Tools that are not installed are
//! reported.
#![expect(clippy::disallowed_methods, reason = "a look at the machine, not a command")]

use std::process::Command;

use lastbyte_engine::{EnvEdit, Launch, Sandbox, Status, Workspace};
use lastbyte_testkit::not_run;

use super::{fixture, folder, run, shell};
use crate::enforcements::with_mounts;

/// Whether this user has the tool outside of any sandbox; reports it if not.
fn is_installed(tool: &str) -> bool {
    let asked = Command::new(tool).arg("--version").output();
    let installed = asked.is_ok_and(|answer| answer.status.success());
    if !installed {
        not_run(&format!("this user has no working {tool}"));
    }
    installed
}

/// Runs it in a new workspace with each enforcement that has mounts.
async fn works(script: &str) {
    for enforcement in with_mounts() {
        let (fixture, folder) = (fixture(enforcement), folder());
        let home = folder.path().to_str().unwrap();
        let cache = EnvEdit::Set("npm_config_cache".into(), format!("{home}/.npm").into());
        let cargo = EnvEdit::Set("CARGO_HOME".into(), format!("{home}/.cargo").into());
        let launch = Launch {
            sandbox: Sandbox::WorkspaceWrite(Workspace::default()),
            env: vec![cache, cargo],
            ..shell(&format!("set -e; {script}"), folder.path())
        };
        let (status, text) = run(&fixture, launch).await;
        assert_eq!(status, Status::Exited(0), "{enforcement:?}: {text}");
    }
}

#[tokio::test]
async fn git_creates_a_repository_and_commits() {
    if !is_installed("git") {
        return;
    }
    works(
        "git init -q -b main . && echo x > file && git add file && \
         git -c user.name=a -c user.email=a@b commit -q -m first && \
         git worktree add -q side && git -C side log --oneline && git gc -q && git fsck",
    )
    .await;
}

#[tokio::test]
async fn cargo_builds_a_crate() {
    if !is_installed("cargo") {
        return;
    }
    works(
        "mkdir src && echo 'fn main() { println!(\"built\"); }' > src/main.rs && \
         printf '[package]\\nname = \"tiny\"\\nedition = \"2024\"\\n' > Cargo.toml && \
         cargo build --offline --quiet && ./target/debug/tiny | grep built",
    )
    .await;
}

#[tokio::test]
async fn python_creates_an_environment_and_shares_memory() {
    if !is_installed("python3") {
        return;
    }
    works(
        "python3 -m venv --without-pip env && \
         ./env/bin/python -c 'import concurrent.futures as f, os\n\
print(list(f.ProcessPoolExecutor(2).map(os.path.exists, [\"/\", \"/no\"])))' | grep 'True, False'",
    )
    .await;
}

#[tokio::test]
async fn npm_installs_from_a_folder() {
    if !is_installed("npm") {
        return;
    }
    works(
        "mkdir part app && echo '{\"name\":\"part\",\"version\":\"1.0.0\"}' > part/package.json && \
         echo 'module.exports = 7' > part/index.js && cd app && \
         echo '{\"name\":\"app\",\"version\":\"1.0.0\"}' > package.json && \
         npm install --offline --no-audit --no-fund ../part && \
         node -e 'if (require(\"part\") !== 7) process.exit(1)'",
    )
    .await;
}

#[tokio::test]
async fn make_compiles_and_runs() {
    if !is_installed("make") {
        return;
    }
    works(
        "printf 'int main(void) { return 0; }' > a.c && \
         printf 'all: a b\\n\\t./a\\nb: a.c\\n\\tcc -o b a.c\\na: a.c\\n\\tcc -o a a.c\\n' > Makefile \
         && make -j2",
    )
    .await;
}

/// Modes without setuid and setgid are not refused by the filter.
#[tokio::test]
async fn files_are_copied_and_unpacked_with_their_modes() {
    works(
        "mkdir -m 750 from && echo x > from/f && install -m 755 from/f from/run && \
         cp -a from copy && tar cf all.tar from && mkdir to && tar xpf all.tar -C to && \
         test $(stat -c %a copy/run to/from/run | tr -d '\n') = 755755 && \
         test $(stat -c %a copy to/from | tr -d '\n') = 750750",
    )
    .await;
}
