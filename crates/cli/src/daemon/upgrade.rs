//! The worker's side of an upgrade: it tries the other program, tells the keeper, and leaves.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use lastbyte_keeper::Joined;
use lastbyte_server::UpgradeAsked;
use lastbyte_sys::{registry, worker};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::kept::Kept;

/// The command that a program is tried with. It prints [`own_versions`].
const TRIAL: &str = "worker-version";
const TRIAL_PATIENCE: Duration = Duration::from_secs(5);

/// How long answers under way have.
const MOMENT: Duration = Duration::from_millis(200);

/// What a program prints by which others know whether it can take over from them.
pub(crate) fn own_versions() -> String {
    let [version, keeper, registry] = own();
    format!("lastbyte {version} keeper {keeper} registry {registry}\n")
}

fn own() -> [String; 3] {
    let version = env!("CARGO_PKG_VERSION").into();
    [version, lastbyte_keeper::VERSION.to_string(), registry::VERSION.to_string()]
}

/// Answers requests for an upgrade until one can be carried out. Never returns without a keeper.
pub(crate) async fn until_agreed(kept: Option<Kept<'_>>) -> &Joined {
    let Some((joined, _, mut upgrades)) = kept else { return pending().await };
    while let Some(UpgradeAsked { binary, answer }) = upgrades.recv().await {
        let tried = agree(joined, binary).await;
        let agreed = tried.is_ok();
        // A client that has gone away may have given up: nothing is done behind its back.
        if answer.send(tried.map_err(|error| format!("{error:#}"))).is_ok() && agreed {
            return joined;
        }
    }
    pending().await
}

/// Returns the version of the program that the next worker runs.
async fn agree(joined: &Joined, binary: PathBuf) -> anyhow::Result<String> {
    let path = binary.clone();
    let version = spawn_blocking(move || try_out(&path)).await.context("the trial failed")??;
    joined.offer_upgrade(&binary).context("cannot tell the keeper of the upgrade")?;
    Ok(version)
}

/// Whether this program can take over. Returns its version.
fn try_out(binary: &Path) -> anyhow::Result<String> {
    let path = binary.display();
    let output = worker::try_out(binary, TRIAL, TRIAL_PATIENCE);
    let output = output.with_context(|| format!("cannot execute {path}"))?;
    let Some(output) = output else {
        bail!("cannot upgrade to {path}: `{TRIAL}` took longer than {TRIAL_PATIENCE:?}");
    };
    if !output.status.success() {
        let status = output.status;
        bail!("cannot upgrade to {path}: not a lastbyte that can take over ({TRIAL}: {status})");
    }
    judge(&String::from_utf8_lossy(&output.stdout))
        .with_context(|| format!("cannot upgrade to {path}"))
}

fn judge(printed: &str) -> anyhow::Result<String> {
    let words: Vec<&str> = printed.split_whitespace().collect();
    let ["lastbyte", version, "keeper", keeper, "registry", registry] = words[..] else {
        bail!("not a lastbyte program");
    };
    let [own_version, own_keeper, own_registry] = own();
    if [keeper, registry] != [own_keeper.as_str(), own_registry.as_str()] {
        bail!(
            "version {version} cannot take over what {own_version} runs (it has keeper {keeper} and \
             registry {registry}, not {own_keeper} and {own_registry}); stop the server with \
             `lastbyte shutdown` and start the other version"
        );
    }
    Ok(version.to_owned())
}

/// Leaves once answers under way are sent, the one to the request for this among them.
pub(crate) async fn leave(joined: &Joined, serving: JoinHandle<()>) -> ! {
    tracing::info!("leaving for an upgrade");
    // Whatever is not answered by then is asked again, as after a crash.
    _ = timeout(MOMENT, serving).await;
    joined.leave_for_upgrade()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_the_same_numbers_can_take_over() {
        assert_eq!(judge(&own_versions()).unwrap(), env!("CARGO_PKG_VERSION"));
        let other = own_versions().replace("keeper", "keeper 9");
        for (printed, want) in [
            ("lastbyte 9.9 keeper 9 registry 1\n", "version 9.9 cannot take over"),
            ("lastbyte 9.9 keeper 1 registry 9\n", "version 9.9 cannot take over"),
            ("lastbyte 9.9\n", "not a lastbyte program"),
            ("", "not a lastbyte program"),
            (&other, "not a lastbyte program"),
        ] {
            let error = judge(printed).unwrap_err().to_string();
            assert!(error.starts_with(want), "{printed:?}: {error}");
        }
    }
}
