//! A command whose clients are gone is stopped, if it was launched so.

use std::time::Duration;

use lastbyte_engine::{Cause, Launch, OnDisconnect, Process, ReachChoice, Status, Verb};
use lastbyte_testkit::{eventually, is_alive};

use crate::fixture::{Fixture, finish, patiently, sure_reaches};

const SHORT: Duration = Duration::from_millis(100);
const LEFT: Cause = Cause::Stopped { verb: Verb::Disconnect, escalated: false };

fn launch(fixture: &Fixture, actions: &str, after: Duration) -> Launch {
    Launch { on_disconnect: OnDisconnect::Stop { after }, ..fixture.launch(actions) }
}

/// Starts a command that nobody connects to, and waits until it was stopped for that.
async fn another_is_stopped(fixture: &Fixture) {
    let other = fixture.start_launch(launch(fixture, "hold", SHORT)).await;
    assert_eq!(finish(&other).await.0.cause, LEFT);
}

fn is_running(process: &Process) -> bool {
    process.snapshot().ending().is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_nobody_connects_to_is_stopped_with_its_tree() {
    for reach in sure_reaches() {
        let fixture = Fixture::with(|settings| settings.reach = ReachChoice::Only(reach));
        let process = fixture.start_launch(launch(&fixture, "tree 3 mixed then hold", SHORT)).await;
        let pids = fixture.anchor.wait_for(4);
        assert_eq!(finish(&process).await.0.cause, LEFT);
        eventually("all of them end", || !pids.iter().any(|pid| is_alive(*pid)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_runs_for_as_long_as_one_client_is_connected() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(launch(&fixture, "hold", SHORT)).await;
    let clients = (process.connect().unwrap(), process.connect().unwrap());
    another_is_stopped(&fixture).await;
    drop(clients.0);
    another_is_stopped(&fixture).await;
    another_is_stopped(&fixture).await;
    assert!(is_running(&process));
    drop(clients.1);
    assert_eq!(finish(&process).await.0.cause, LEFT);
}

/// On one thread, so that it has gone before anybody can look.
#[tokio::test]
async fn a_client_that_comes_back_in_time_keeps_it_running() {
    let fixture = Fixture::new();
    let after = 30 * SHORT;
    let process = fixture.start_launch(launch(&fixture, "hold", after)).await;
    let started = tokio::time::Instant::now();
    // Twice the time, but never so long without a client.
    while started.elapsed() < 2 * after {
        drop(process.connect());
        another_is_stopped(&fixture).await;
    }
    assert!(is_running(&process));
    patiently("stop", process.stop(Verb::Stop)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_survives_its_ending_is_stopped_when_its_clients_are_gone() {
    for reach in sure_reaches() {
        let fixture = Fixture::with(|settings| settings.reach = ReachChoice::Only(reach));
        let process = fixture.start_launch(launch(&fixture, "leave-silent-holder", SHORT)).await;
        let client = process.connect();
        let survivors = fixture.anchor.wait_for(1);
        let (ending, _) = finish(&process).await;
        assert_eq!((ending.status, ending.cause), (Status::Exited(0), Cause::Own));
        another_is_stopped(&fixture).await;
        assert!(survivors.iter().all(|pid| is_alive(*pid)));
        drop(client);
        eventually("the survivor ends", || !survivors.iter().any(|pid| is_alive(*pid)));
        assert_eq!(finish(&process).await.0.cause, Cause::Own);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_a_client_of_a_command_that_is_kept() {
    let fixture = Fixture::new();
    let process = fixture.start("exit 0").await;
    assert!(process.connect().is_none());
    finish(&process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn once_it_has_ended_without_survivors_no_client_matters() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(launch(&fixture, "exit 0", 600 * SHORT)).await;
    let client = process.connect().unwrap();
    finish(&process).await;
    let over = async {
        while client.matters() {
            tokio::task::yield_now().await;
        }
    };
    patiently("nobody waits for it", over).await;
}
