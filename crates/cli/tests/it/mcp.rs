//! `lastbyte mcp`: an agent's end of standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_testkit::{PATIENCE, eventually, testchild};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::daemon::{Daemon, Home};
use crate::harness::{sockets_of, start};

/// A shim, and what it writes.
struct Shim {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    sent: u64,
}

impl Shim {
    fn start(command: Command) -> Self {
        let mut command = command;
        command.stdin(std::process::Stdio::piped());
        let mut child = start(command);
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (tell, messages) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
        Self { stdin: child.stdin.take(), child, messages, sent: 0 }
    }

    fn of(daemon: &Daemon) -> Self {
        Self::start(daemon.lastbyte(&["mcp"]))
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Calls a tool; returns the id of the request.
    fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.sent += 1;
        let params = json!({ "name": tool, "arguments": arguments });
        let id = self.sent;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
        id
    }

    /// The next message.
    fn next(&self) -> Value {
        self.messages.recv_timeout(PATIENCE).expect("a message comes")
    }

    /// The text of a tool's answer.
    fn call(&mut self, tool: &str, arguments: &Value) -> String {
        let id = self.begin(tool, arguments);
        self.answer(id)
    }

    fn answer(&self, id: u64) -> String {
        let message = self.next();
        assert_eq!(message["id"], id, "{message}");
        text(&message)
    }

    /// Closes standard input; returns the exit code.
    fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // It may have ended.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn text(message: &Value) -> String {
    let text = &message["result"]["content"][0]["text"];
    text.as_str().unwrap_or_else(|| panic!("{message}")).to_owned()
}

fn actions(actions: &str) -> Value {
    let mut words = vec![testchild().to_str().unwrap().to_owned()];
    words.extend(actions.split_whitespace().map(str::to_owned));
    json!(words)
}

/// The id in an answer.
fn id_in(text: &str) -> &str {
    &text[text.find("process 0").unwrap_or_else(|| panic!("{text}")) + 8..][..36]
}

#[test]
fn the_server_is_started_on_first_use_and_everything_is_answered_before_the_end() {
    let home = Home::new();
    let mut shim = Shim::start(home.fixture.lastbyte(&["mcp"]));
    let client = json!({ "name": "test", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    shim.send(&json!({ "jsonrpc": "2.0", "id": "a", "method": "initialize", "params": params }));
    shim.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let greeted = shim.next();
    assert_eq!(
        (&greeted["id"], &greeted["result"]["serverInfo"]["name"]),
        (&json!("a"), &json!("lastbyte"))
    );
    // Standard input of the command is not that of the shim: `cat` ends at once.
    let id = shim.begin("exec_command", &json!({ "command": "cat; sleep 0.2; pwd; echo $MARK" }));
    drop(shim.stdin.take());
    let told = shim.answer(id);
    assert!(told.contains("exited with code 0"), "{told}");
    assert_eq!(shim.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_command_has_the_directory_and_the_variables_of_the_agent() {
    let daemon = Daemon::start();
    let mut command = daemon.lastbyte(&["mcp"]);
    command.current_dir("/tmp").env("MARK", "here");
    let mut shim = Shim::start(command);
    let told = shim.call("exec_command", &json!({ "command": "pwd; echo $MARK" }));
    assert!(told.ends_with("\n\n/tmp\nhere\n"), "{told}");
    let told = shim.call("exec_command", &json!({ "command": "pwd", "workdir": ".." }));
    assert!(told.ends_with("\n\n/\n") || told.ends_with("\n\n/tmp/..\n"), "{told}");
    assert_eq!(shim.end(), Some(0));
}

#[test]
fn two_agents_do_not_see_each_other_unless_they_share_a_session() {
    let daemon = Daemon::start();
    let [mut one, mut other] = [Shim::of(&daemon), Shim::of(&daemon)];
    one.call("exec_command", &json!({ "command": "true" }));
    assert!(other.call("list_processes", &json!({})).starts_with("0 running, 0 ended"));
    assert!(one.call("list_processes", &json!({})).starts_with("0 running, 1 ended"));
    for _ in 0..2 {
        let mut shared = Shim::start(daemon.lastbyte(&["mcp", "--session", "a b%"]));
        shared.call("exec_command", &json!({ "command": "true" }));
    }
    let mut shared = Shim::start(daemon.lastbyte(&["mcp", "--session", "a b%"]));
    assert!(shared.call("list_processes", &json!({})).starts_with("0 running, 2 ended"));
    let listed = daemon.result(&["ps", "--session", "a b%", "--json"]);
    assert_eq!(listed.matches("\"session\":\"a b%\"").count(), 2, "{listed}");
}

#[test]
fn two_hundred_calls_run_side_by_side_and_none_waits_for_a_slow_one() {
    let daemon = Daemon::start();
    let mut shim = Shim::of(&daemon);
    let slow = shim.begin("exec_command", &json!({ "command": actions("hold") }));
    let mut left: Vec<u64> = (0..200)
        .map(|nth| shim.begin("exec_command", &json!({ "command": format!("echo {nth}") })))
        .collect();
    while !left.is_empty() {
        let message = shim.next();
        let id = message["id"].as_u64().unwrap();
        assert_ne!(id, slow);
        assert!(text(&message).ends_with(&format!("\n\n{}\n", id - 2)), "{message}");
        left.retain(|known| *known != id);
    }
    daemon.fixture.anchor.wait_for(1);
    shim.begin("stop_process", &json!({ "process_id": "last", "grace_ms": 0 }));
}

#[test]
fn a_call_goes_on_when_the_server_is_killed_under_it_and_its_command_runs_once() {
    let daemon = Daemon::start();
    let mut shim = Shim::of(&daemon);
    shim.call("list_processes", &json!({}));
    let id = shim.begin(
        "exec_command",
        &json!({ "command": actions(r"print x\n then hold"), "yield_time_ms": 40000 }),
    );
    let pids = daemon.fixture.anchor.wait_for(1);
    let worker = daemon.worker();
    kill_process(Pid::from_raw(worker.cast_signed()).unwrap(), Signal::KILL).unwrap();
    eventually("another worker is there", || ![worker, daemon.pid()].contains(&daemon.worker()));
    let list = shim.begin("list_processes", &json!({}));
    let listed = shim.answer(list);
    assert!(listed.starts_with("1 running, 0 ended"), "{listed}");
    kill_process(Pid::from_raw(pids[0].cast_signed()).unwrap(), Signal::KILL).unwrap();
    let told = shim.answer(id);
    assert!(told.contains("ended by SIGKILL"), "{told}");
    assert_eq!(id_in(&told), id_in(&listed));
}

#[test]
fn a_server_that_is_gone_is_started_again() {
    let mut daemon = Daemon::start();
    let mut shim = Shim::of(&daemon);
    let id = id_in(&shim.call("exec_command", &json!({ "command": "echo kept" }))).to_owned();
    daemon.kill();
    daemon.start_again();
    let told = shim.call("read_output", &json!({ "process_id": id }));
    assert!(told.ends_with("\n\nkept\n"), "{told}");
}

#[test]
fn input_that_was_cut_off_is_not_written_again() {
    let mut daemon = Daemon::start();
    let mut shim = Shim::of(&daemon);
    let start = json!({ "command": "cat", "stdin": "open", "run_in_background": true });
    let id = id_in(&shim.call("exec_command", &start)).to_owned();
    daemon.stop();
    let before = sockets_of(shim.child.id());
    let sent = shim.begin("write_stdin", &json!({ "process_id": id, "chars": "x\n" }));
    eventually("it is connected", || sockets_of(shim.child.id()) > before);
    daemon.kill();
    let told = shim.answer(sent);
    assert!(told.contains("the input may or may not have been written"), "{told}");
    daemon.start_again();
}

#[test]
fn a_cancelled_call_has_no_answer_and_the_next_one_names_what_it_left() {
    let daemon = Daemon::start();
    let mut shim = Shim::of(&daemon);
    let id = shim.begin("exec_command", &json!({ "command": actions("hold") }));
    // A command lives a moment before the server lists it.
    eventually("it is listed", || {
        shim.call("list_processes", &json!({})).contains("1 running, 0 ended")
    });
    let params = json!({ "requestId": id, "reason": "changed my mind" });
    shim.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    // The server notices on its own time that the connection is closed.
    eventually("the next answer says so", || {
        let told = shim.call("list_processes", &json!({}));
        assert!(told.contains("1 running, 0 ended"), "{told}");
        told.starts_with("note: the cancelled call left process ")
    });
}

#[test]
fn answers_are_delivered_after_the_end_of_standard_input() {
    let daemon = Daemon::start();
    let mut shim = Shim::of(&daemon);
    let id = shim.begin("exec_command", &json!({ "command": actions("hold") }));
    let pids = daemon.fixture.anchor.wait_for(1);
    drop(shim.stdin.take());
    kill_process(Pid::from_raw(pids[0].cast_signed()).unwrap(), Signal::KILL).unwrap();
    assert!(shim.answer(id).contains("ended by SIGKILL"));
    assert_eq!(shim.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_shim_whose_client_is_killed_ends_at_once_and_the_command_goes_on() {
    let daemon = Daemon::start();
    // The client is a shell that holds both ends of the shim's pipes.
    let call = json!({ "name": "exec_command", "arguments": { "command": actions("hold"), "yield_time_ms": 50000 } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call });
    let script = "mkfifo in out; \"$LASTBYTE\" mcp <in >out 2>/dev/null & \
                  exec 3>in 4<out 2>&1; printf '%s\\n' \"$CALL\" >&3; echo $!; exec sleep 600";
    let mut command = daemon.fixture.program("sh");
    command
        .args(["-c", script])
        .env("CALL", call.to_string())
        .current_dir(daemon.fixture.home.path());
    let mut client = start(command);
    let mut shim = String::new();
    BufReader::new(client.stdout.take().unwrap()).read_line(&mut shim).unwrap();
    let shim: u32 = shim.trim().parse().unwrap();
    daemon.fixture.anchor.wait_for(1);
    let killed = Instant::now();
    client.kill().unwrap();
    client.wait().unwrap();
    eventually("the shim is gone", || !lastbyte_testkit::is_alive(shim));
    assert!(killed.elapsed() < Duration::from_secs(20), "it did not wait for the answer");
    assert!(daemon.result(&["ps"]).contains("running"));
}

/// Of every client, as the page about agents shows them.
#[test]
fn the_settings_that_are_printed_are_those_of_the_page() {
    const PAGE: &str = include_str!("../../../../docs/agents.md");
    let daemon = Daemon::start();
    for client in ["claude-code", "codex", "gemini", "opencode", "cursor", "vscode", "goose"] {
        let printed = daemon.result(&["mcp", "config", client]);
        let (_, block) =
            PAGE.split_once(&format!("<!-- lastbyte mcp config {client} -->\n```")).unwrap();
        let (_, block) = block.split_once('\n').unwrap();
        let shown = block.split_once("```").unwrap().0;
        assert_eq!(printed, shown.replace("/usr/local/bin/lastbyte", &crate::harness::LASTBYTE));
    }
}
