//! What goes on when the worker is killed: everything that was running.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use lastbyte_testkit::{eventually, is_alive, not_run};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;

use crate::daemon::Daemon;
use crate::harness::{LASTBYTE, start};

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Kills the worker and waits until the next one answers.
pub(crate) fn kill_worker(daemon: &Daemon) {
    let worker = daemon.worker();
    kill(worker.cast_signed(), Signal::KILL);
    daemon.result(&["ps"]);
    assert_ne!(daemon.worker(), worker);
}

pub(crate) fn ending(daemon: &Daemon, id: &str) -> Value {
    let process: Value = serde_json::from_str(&daemon.result(&["show", "--json", id])).unwrap();
    process["ending"].clone()
}

/// A child starts as a copy of its spawner, and the kernel counts the spawner's peak.
#[test]
fn the_memory_of_a_dead_worker_is_not_reported_as_that_of_a_command() {
    let daemon = Daemon::start();
    // The worker has more memory than the next one will have.
    let large = daemon.result(&["start", "--stdin-open", "cat >/dev/null"]);
    let mut write = daemon.lastbyte(&["write", large.trim()]);
    write.stdin(std::process::Stdio::piped());
    let mut write = start(write);
    write.stdin.take().unwrap().write_all(&vec![b'x'; 8 << 20]).unwrap();
    assert!(write.wait().unwrap().success());
    let id = daemon.result(&["start", "--stdin-open", "--", "cat"]);
    let id = id.trim();
    kill_worker(&daemon);
    daemon.result(&["write", id, "--close"]);
    daemon.result(&["wait", id]);
    let peak = ending(&daemon, id)["usage"]["peak_memory"].as_u64();
    assert!(peak.is_none_or(|peak| peak < 8 << 20), "{peak:?}");
    daemon.result(&["stop", large.trim()]);
}

#[test]
fn output_input_and_status_go_on_over_several_deaths() {
    check_several_deaths(&Daemon::start());
}

/// A filter that does not know `clone3` (435), as old versions of Docker have. The number of `prctl`
/// differs between architectures; that of `PR_SET_NO_NEW_PRIVS` is 38, of `PR_SET_SECCOMP` 22.
const WITHOUT_CLONE3: &str = r#"
    my $prctl = shift;
    my @load_number = (0x20, 0, 0, 0);
    my @skip_one_unless_clone3 = (0x15, 0, 1, 435);
    my @answer_enosys = (0x06, 0, 0, 0x00050026);
    my @allow = (0x06, 0, 0, 0x7fff0000);
    my $filter = pack "(SCCL)4", @load_number, @skip_one_unless_clone3, @answer_enosys, @allow;
    syscall($prctl, 38, 1, 0, 0, 0) == 0 or die "no new privileges: $!";
    syscall($prctl, 22, 2, pack("Sx![Q]P", 4, $filter), 0, 0) == 0 or die "filter: $!";
    exec @ARGV or die "exec: $!";
"#;

#[test]
fn a_server_without_clone3_goes_on_over_several_deaths() {
    if !std::path::Path::new("/usr/bin/perl").exists() {
        return not_run("a filter is installed by perl, which is not here");
    }
    let prctl = if cfg!(target_arch = "x86_64") { "157" } else { "167" };
    let daemon = Daemon::started_by("/usr/bin/perl", &["-e", WITHOUT_CLONE3, prctl]);
    let id = daemon.result(&["start", "--", &LASTBYTE, "doctor"]);
    daemon.finish(&["wait", id.trim()]);
    let report = daemon.result(&["logs", id.trim()]);
    assert!(report.contains("using the older clone instead"), "{report}");
    check_several_deaths(&daemon);
}

fn check_several_deaths(daemon: &Daemon) {
    let id = daemon.result(&["start", "--stdin-open", "--", "sh", "-c", "cat; exit 7"]);
    let id = id.trim();
    let mut want = String::new();
    for line in ["one", "two", "three"] {
        daemon.result(&["write", id, "--line", line]);
        kill_worker(daemon);
        want += &format!("{line}\n");
    }
    daemon.result(&["write", id, "--close"]);
    assert_eq!(daemon.finish(&["wait", id]).code, Some(7));
    assert_eq!(daemon.result(&["logs", id]), want);
    let ending = ending(daemon, id);
    assert_eq!(ending["cause"]["kind"], "own");
    assert_eq!(ending["kept"]["kind"], "whole");
    assert!(ending["usage"]["user_ns"].is_u64(), "{ending}");
}

#[test]
fn a_leader_that_exits_while_there_is_no_worker_keeps_its_status() {
    let daemon = Daemon::start();
    let id = daemon.result(&["start", "--", "sleep", "600"]);
    let id = id.trim();
    let process: Value = serde_json::from_str(&daemon.result(&["show", "--json", id])).unwrap();
    let leader = i32::try_from(process["pid"].as_i64().unwrap()).unwrap();
    let worker = daemon.worker().cast_signed();
    // Nobody starts another worker before the leader is dead.
    daemon.stop();
    kill(worker, Signal::KILL);
    kill(leader, Signal::USR1);
    daemon.resume();
    daemon.finish(&["wait", id]);
    let status = &ending(&daemon, id)["status"];
    assert_eq!((&status["kind"], &status["name"]), (&"signalled".into(), &"SIGUSR1".into()));
}

#[test]
fn streams_stay_apart_and_a_terminal_stays_one() {
    let daemon = Daemon::start();
    let script = "read x; echo out; echo err >&2; read x; echo out; echo err >&2";
    let split = ["start", "--split", "--stdin-open", "--", "sh", "-c", script];
    let split = daemon.result(&split).trim().to_owned();
    let tty = [
        "start",
        "--tty",
        "24x80",
        "--stdin-open",
        "--",
        "sh",
        "-c",
        "read x; test -t 1 && echo tty $x",
    ];
    let tty = daemon.result(&tty).trim().to_owned();
    daemon.result(&["write", &split, "--line", ""]);
    daemon.result(&["wait", &split, "--pattern", "err"]);
    kill_worker(&daemon);
    daemon.result(&["write", &split, "--line", ""]);
    daemon.result(&["write", &tty, "--line", "x"]);
    daemon.result(&["wait", &split]);
    daemon.result(&["wait", &tty]);
    assert_eq!(daemon.result(&["logs", "--stream", "stdout", &split]), "out\nout\n");
    assert_eq!(daemon.result(&["logs", "--stream", "stderr", &split]), "err\nerr\n");
    let text = daemon.result(&["logs", &tty]);
    assert!(text.contains("tty x"), "{text:?}");
}

#[test]
fn a_timeout_fires_and_a_stop_is_finished() {
    let daemon = Daemon::start();
    let timed = daemon.result(&["start", "--timeout", "2s", "--", "sleep", "600"]);
    let script = "trap 'echo asked' TERM; echo up; while :; do sleep 0.1; done";
    let stopped = daemon.result(&["start", "--grace", "2s", "--", "sh", "-c", script]);
    let (timed, stopped) = (timed.trim(), stopped.trim());
    daemon.result(&["wait", stopped, "--pattern", "up"]);
    let stop = start(daemon.lastbyte(&["stop", stopped]));
    daemon.result(&["wait", stopped, "--pattern", "asked"]);
    kill_worker(&daemon);
    daemon.finish(&["wait", timed]);
    daemon.finish(&["wait", stopped]);
    assert_eq!(ending(&daemon, timed)["cause"]["kind"], "timed_out");
    let ending = ending(&daemon, stopped);
    let cause = &ending["cause"];
    assert_eq!((&cause["kind"], &cause["escalated"]), (&"stopped".into(), &true.into()));
    assert_eq!(ending["status"]["name"], "SIGKILL");
    stop.wait_with_output().unwrap();
}

#[test]
fn a_command_whose_clients_were_lost_with_the_worker_is_stopped() {
    let daemon = Daemon::start();
    let body = r#"{"shell":"exec sleep 600","on_disconnect":"stop","disconnect_timeout_ms":1000}"#;
    let mut client = UnixStream::connect(daemon.socket()).unwrap();
    let head = "POST /v1/processes HTTP/1.1\r\nHost: localhost";
    write!(client, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = BufReader::new(&client);
    assert!(answer.by_ref().lines().any(|line| line.unwrap().is_empty()), "a head");
    let mut started = serde_json::Deserializer::from_reader(answer).into_iter::<Value>();
    let process = &started.next().unwrap().unwrap()["process"];
    let leader = u32::try_from(process["pid"].as_u64().unwrap()).unwrap();
    kill(daemon.worker().cast_signed(), Signal::KILL);
    // Not asked by a request, which would be a client.
    eventually("it is stopped", || !is_alive(leader));
    let id = process["id"].as_str().unwrap();
    daemon.finish(&["wait", id]);
    let cause = ending(&daemon, id)["cause"].clone();
    assert_eq!((&cause["kind"], &cause["verb"]), (&"stopped".into(), &"disconnect".into()));
}

#[test]
fn a_key_finds_its_process_and_a_background_child_writes_on() {
    let daemon = Daemon::start();
    let start = ["start", "--key", "k", "--", "sh", "-c", "sleep 600 & echo up; exec sleep 600"];
    let id = daemon.result(&start);
    kill_worker(&daemon);
    assert_eq!(daemon.result(&start), id);
    daemon.result(&["stop", id.trim()]);
    let background = "while :; do echo late; sleep 0.1; done & exit 3";
    let id = daemon.result(&["start", "--", "sh", "-c", background]);
    let id = id.trim();
    assert_eq!(daemon.finish(&["wait", id]).code, Some(3));
    kill_worker(&daemon);
    assert_eq!(ending(&daemon, id)["closing"]["kind"], "held");
    let late = || daemon.result(&["logs", "--late", id]).len();
    let before = late();
    eventually("it writes on", || late() > before);
    daemon.result(&["stop", id]);
}

#[test]
fn a_worker_that_lacks_descriptors_leaves_everything_to_a_later_one() {
    let daemon = Daemon::start();
    let script = "echo up; read x; echo got $x; exit 5";
    let start = || daemon.result(&["start", "--stdin-open", "--", "sh", "-c", script]);
    let ids: Vec<String> = (0..12).map(|_| start().trim().to_owned()).collect();
    let pid = |id: &String| {
        let process: Value = serde_json::from_str(&daemon.result(&["show", "--json", id])).unwrap();
        u32::try_from(process["pid"].as_u64().unwrap()).unwrap()
    };
    let leaders: Vec<u32> = ids.iter().map(pid).collect();
    let worker = daemon.worker();
    let open = fs::read_dir(format!("/proc/{worker}/fd")).unwrap().count() as u64;
    // The next one has the keeper's limit, which is too small for all of them.
    // Up to 16 are log files opened ahead, which a worker with few descriptors does without.
    let few = Some(open - 28);
    let keeper = Pid::from_raw(daemon.pid().cast_signed());
    let before = prlimit(keeper, Resource::Nofile, Rlimit { current: few, maximum: few }).unwrap();
    kill(worker.cast_signed(), Signal::KILL);
    let failed = || daemon.log().matches("cannot take over from the worker before").count();
    eventually("two workers give up", || failed() >= 2);
    assert!(leaders.iter().all(|leader| is_alive(*leader)), "{leaders:?}");
    if prlimit(keeper, Resource::Nofile, before).is_err() {
        not_run("a take-over after one that lacked descriptors: only root can raise the limit");
        return;
    }
    for id in &ids {
        daemon.result(&["write", id, "--line", "it"]);
        assert_eq!(daemon.finish(&["wait", id]).code, Some(5));
        assert_eq!(daemon.result(&["logs", id]), "up\ngot it\n");
        assert_eq!(ending(&daemon, id)["kept"]["kind"], "whole");
    }
}

#[test]
fn an_output_that_was_cut_with_worker_and_stand_in_is_not_called_whole() {
    let daemon = Daemon::start();
    let quick =
        daemon.result(&["start", "--stdin-open", "--", "sh", "-c", "echo up; read x; exit 3"]);
    let slow = daemon.result(&["start", "--", "sh", "-c", "echo up; exec sleep 600"]);
    let (quick, slow) = (quick.trim(), slow.trim());
    for id in [quick, slow] {
        daemon.result(&["wait", id, "--pattern", "up"]);
    }
    let (worker, stand_in) = (daemon.worker(), daemon.stand_in().unwrap());
    daemon.stop();
    for pid in [worker, stand_in] {
        kill(pid.cast_signed(), Signal::KILL);
    }
    daemon.resume();
    // The pipe of its input is gone too, so it reads the end of it.
    assert_eq!(daemon.finish(&["wait", quick]).code, Some(3));
    // Another crash does not mend it.
    kill_worker(&daemon);
    daemon.result(&["stop", slow]);
    for id in [quick, slow] {
        let kept = &ending(&daemon, id)["kept"];
        assert_eq!(
            (&kept["kind"], &kept["errno"], &kept["at"]),
            (&"failed".into(), &32.into(), &3.into())
        );
        assert_eq!(daemon.result(&["logs", id]), "up\n");
        assert!(daemon.result(&["show", id]).contains("at byte 3, in a crash of the server"));
    }
}

/// The lines of the feed behind this event.
fn events_after(daemon: &Daemon, id: &str) -> impl Iterator<Item = String> + use<> {
    let mut stream = UnixStream::connect(daemon.socket()).unwrap();
    let head = format!("GET /v1/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: {id}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    BufReader::new(stream).lines().map(Result::unwrap)
}

#[test]
fn events_that_a_take_over_lost_are_one_gap() {
    let daemon = Daemon::start();
    daemon.result(&["wait", &daemon.testchild(&[], "exit 0")]);
    let first =
        events_after(&daemon, "1-1").find_map(|line| Some(line.strip_prefix("id: ")?.to_owned()));
    kill_worker(&daemon);
    let mut lines = events_after(&daemon, &first.unwrap());
    let mut told = || lines.find(|line| line.starts_with("event: ")).unwrap();
    assert_eq!(told(), "event: gap");
    daemon.testchild(&[], "exit 0");
    assert_eq!(told(), "event: started");
}

#[test]
fn the_next_worker_goes_on_enforcing_sampled_limits() {
    let daemon = Daemon::start();
    let hogs = [
        (["--memory", "64MiB"], "eat-memory", "memory"),
        (["--pids", "20"], "fork-bomb 200 then hold", "pids"),
        // What the kernel limits is each process, and the leader does nothing.
        (
            ["--cpu-time", "900ms"],
            "background spin end then background spin end then hold",
            "cpu_time",
        ),
    ];
    let ids = hogs.map(|(limit, hog, _)| {
        let options = ["--stdin-open", limit[0], limit[1]];
        daemon.testchild(&options, &format!("print up then await-eof then {hog}"))
    });
    ids.iter().for_each(|id| _ = daemon.result(&["wait", id, "--pattern", "up"]));
    kill_worker(&daemon);
    for (id, (_, hog, which)) in ids.iter().zip(hogs) {
        daemon.result(&["write", id, "--close"]);
        daemon.finish(&["wait", id]);
        let ending = ending(&daemon, id);
        assert_eq!(ending["cause"]["kind"], "limit", "{hog}: {ending}");
        assert_eq!(ending["cause"]["which"], which, "{hog}: {ending}");
        assert_eq!(ending["limits_hit"], serde_json::json!([which]), "{hog}");
        let shown: Value = serde_json::from_str(&daemon.result(&["show", "--json", id])).unwrap();
        assert!(shown["limits_enforced"][which].is_string(), "{shown}");
    }
    daemon.finish(&["stop", "--all"]);
}
