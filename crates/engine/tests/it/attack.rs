//! Attempts of a real program to get out of each policy, with each enforcement.

mod expected;
mod ground;
mod table;

use lastbyte_engine::{Enforcement, Network, SandboxError, StartError};

use crate::enforcements::enforcements_here;
use crate::unprivileged::as_nobody;
use expected::{Expected, expected};
use ground::{Case, Ground};
use table::Table;

/// The result of one attempt: `ok` or the name of an error number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub group: String,
    pub name: String,
    pub result: String,
}

/// Run as the user of the tests. The table in docs/security.md is from user 0.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_gets_out_of_a_sandbox() {
    let mut table = Table::new();
    table.add("full access", &attack(Case::FullAccess, Enforcement::Landlock).await);
    for case in Case::CONFINED {
        for enforcement in enforcements_here() {
            if case.network() == Network::On && enforcement == Enforcement::Landlock {
                refused_without_namespaces(case).await;
                continue;
            }
            let outcomes = attack(case, enforcement).await;
            check(case, enforcement, &outcomes);
            table.add(&format!("{}, {}", case.name(), name(enforcement)), &outcomes);
        }
    }
    table.compare();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_gets_out_of_a_sandbox_of_an_unprivileged_server() {
    if !as_nobody("attack::nothing_gets_out_of_a_sandbox_of_an_unprivileged_server") {
        return;
    }
    for case in Case::CONFINED {
        for enforcement in enforcements_here() {
            if case.network() == Network::Off || enforcement != Enforcement::Landlock {
                check(case, enforcement, &attack(case, enforcement).await);
            }
        }
    }
}

async fn attack(case: Case, enforcement: Enforcement) -> Vec<Outcome> {
    let ground = Ground::new(enforcement);
    ground.attack(case).await
}

async fn refused_without_namespaces(case: Case) {
    let ground = Ground::new(Enforcement::Landlock);
    let refused = ground.fixture.engine.start(ground.launch(case, 0)).await.unwrap_err();
    let needs = matches!(refused, StartError::Sandbox(SandboxError::NeedsNamespaces { .. }));
    assert!(needs, "{refused:?}");
}

fn check(case: Case, enforcement: Enforcement, outcomes: &[Outcome]) {
    assert!(outcomes.len() > 80, "{outcomes:?}");
    let wrong: Vec<&Outcome> = outcomes
        .iter()
        .filter(|outcome| match expected(case, enforcement, outcome) {
            Expected::Refused => outcome.result == "ok" || outcome.result == "died",
            Expected::Allowed => outcome.result != "ok",
        })
        .collect();
    assert!(wrong.is_empty(), "{case:?} by {enforcement:?}: {wrong:#?}");
}

fn name(enforcement: Enforcement) -> &'static str {
    match enforcement {
        Enforcement::Mounts => "mounts",
        Enforcement::UserMounts => "user mounts",
        Enforcement::Landlock => "landlock",
    }
}
