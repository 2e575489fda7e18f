//! Commands on a terminal.

use lastbyte_engine::{
    Closing, EnvEdit, Holders, Launch, LaunchError, ResizeError, Signal, StartError, Status, Stdin,
    Streams, WindowSize,
};
use lastbyte_testkit::pattern_bytes;
use tokio::task::JoinSet;

use crate::fixture::{Fixture, finish, finish_text, patiently, read};

fn size(rows: u16, cols: u16) -> WindowSize {
    WindowSize { rows, cols }
}

fn on_terminal(fixture: &Fixture, actions: &str) -> Launch {
    let streams = Streams::Pty(size(24, 80));
    Launch { streams, stdin: Stdin::Open, ..fixture.launch(actions) }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_three_streams_are_the_commands_controlling_terminal() {
    let fixture = Fixture::new();
    let process =
        fixture.start_launch(on_terminal(&fixture, "is-tty then winsize then report")).await;
    let (status, text) = finish_text(&process).await;
    assert_eq!(status, Status::Exited(0));
    assert!(text.starts_with("stdin stdout stderr\r\n24 80\r\n"), "{text}");
    assert!(text.contains("\"has_ctty\":true") && text.contains("\"fds\":[0,1,2]"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_stdin_closed_only_the_output_is_a_terminal() {
    let fixture = Fixture::new();
    let launch = Launch { stdin: Stdin::Closed, ..on_terminal(&fixture, "await-eof then is-tty") };
    let process = fixture.start_launch(launch).await;
    assert_eq!(finish_text(&process).await, (Status::Exited(0), "stdout stderr\r\n".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_is_reported_exactly() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(on_terminal(&fixture, "print x then kill-self 9")).await;
    let (ending, bytes) = finish(&process).await;
    assert_eq!(ending.status, Status::Signalled { signal: Signal::KILL, core_dumped: false });
    assert_eq!((bytes.as_slice(), &ending.closing), (b"x".as_slice(), &Closing::Eof));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_directory_is_an_error_on_a_terminal_too() {
    let fixture = Fixture::new();
    let cwd = Some("/no/such/folder".into());
    let launch = Launch { cwd, ..on_terminal(&fixture, "exit 0") };
    let error = fixture.engine.start(launch).await.expect_err("no such folder");
    assert!(matches!(error, StartError::Launch(LaunchError::Cwd { .. })), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn input_is_echoed_and_its_end_is_typed() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(on_terminal(&fixture, "cat then print done")).await;
    process.write(b"hello\n".into(), None).await.unwrap();
    process.write_and_close(b"".into(), None).await.unwrap();
    let (status, text) = finish_text(&process).await;
    assert_eq!((status, text.as_str()), (Status::Exited(0), "hello\r\nhello\r\ndone"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_size_reaches_the_command_as_a_signal() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(on_terminal(&fixture, "print-winsize-on-winch")).await;
    patiently("it listens", process.until_past("ready".len() as u64)).await;
    process.resize(size(50, 132)).await.unwrap();
    let (_, text) = finish_text(&process).await;
    assert!(text.contains("50 132"), "{text}");
    assert_eq!(process.resize(size(1, 1)).await, Err(ResizeError::Exited));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_size_of_zero_or_a_process_without_a_terminal_is_refused() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(on_terminal(&fixture, "hold")).await;
    assert_eq!(process.resize(size(0, 80)).await, Err(ResizeError::Zero));
    let process = fixture.start("hold").await;
    assert_eq!(process.resize(size(10, 10)).await, Err(ResizeError::NoTerminal));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_output_is_complete() {
    let fixture = Fixture::new();
    // A terminal turns a newline into two characters; after `stty raw` the pattern is unchanged.
    let child = lastbyte_testkit::testchild();
    let text = format!("stty raw && exec {} write-bytes 3000000", child.display());
    let launch = Launch { program: Launch::shell(text).program, ..on_terminal(&fixture, "exit 0") };
    let process = fixture.start_launch(launch).await;
    let (ending, bytes) = finish(&process).await;
    assert_eq!((ending.status, ending.final_len), (Status::Exited(0), 3_000_000));
    assert!(bytes == pattern_bytes(0..3_000_000));
}

/// The only thread of this runtime waits until everything is written, so the owner reads it at
/// once.
#[tokio::test(flavor = "current_thread")]
async fn small_writes_that_are_read_together_keep_their_order() {
    const TIMES: u64 = 10_000;
    let fixture = Fixture::new();
    let child = lastbyte_testkit::testchild();
    // Each write is one byte, to standard output and standard error in turn.
    let text = format!("stty raw && exec {} alternate {TIMES} then hold", child.display());
    let launch = Launch { program: Launch::shell(text).program, ..on_terminal(&fixture, "exit 0") };
    let process = fixture.start_launch(launch).await;
    fixture.anchor.wait_for(1);
    fixture.anchor.tell("print end");
    fixture.anchor.tell("exit 0");
    let (ending, bytes) = finish(&process).await;
    assert_eq!((ending.status, &ending.closing), (Status::Exited(0), &Closing::Eof));
    let twice = |byte| [byte, byte];
    let mut want: Vec<u8> = pattern_bytes(0..TIMES).into_iter().flat_map(twice).collect();
    want.extend(b"end");
    assert!(bytes == want, "{} bytes", bytes.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_terminals_at_once_all_end_with_their_last_byte() {
    let fixture = Fixture::new();
    let mut all = JoinSet::new();
    for number in 0..200 {
        let launch = on_terminal(&fixture, &format!("print start{number} then print end{number}"));
        let engine = fixture.engine.clone();
        all.spawn(async move { (number, engine.start(launch).await.expect("it starts").process) });
    }
    while let Some(started) = all.join_next().await {
        let (number, process) = started.unwrap();
        let want = format!("start{number}end{number}");
        assert_eq!(finish_text(&process).await, (Status::Exited(0), want));
    }
}

/// As on any terminal: when the session leader exits, the foreground group gets SIGHUP.
#[tokio::test(flavor = "multi_thread")]
async fn a_background_child_is_hung_up_when_the_leader_exits() {
    let fixture = Fixture::new();
    let launch = on_terminal(&fixture, "background hold end then print x");
    let process = fixture.start_launch(launch).await;
    let (ending, bytes) = finish(&process).await;
    assert_eq!((ending.status, bytes.as_slice()), (Status::Exited(0), b"x".as_slice()));
    fixture.anchor.wait_for_at_most(0);
    let closed = patiently("nobody holds the terminal", process.wait_for(|_| false)).await;
    assert!(!closed.log_open);
}

/// A child that ignores SIGHUP holds a terminal that is hung up. Nothing waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_ignores_the_hangup_is_a_holder() {
    let fixture = Fixture::new();
    let actions = "background ignore 1 then hold end then read-exactly 2 then print x";
    let process = fixture.start_launch(on_terminal(&fixture, actions)).await;
    fixture.anchor.wait_for(1);
    process.write(b"1\n".into(), None).await.unwrap();
    let (ending, bytes) = finish(&process).await;
    assert_eq!((ending.status, bytes.as_slice()), (Status::Exited(0), b"1\r\nx".as_slice()));
    let Closing::Held(Holders::Known(holders)) = &ending.closing else { panic!("{ending:?}") };
    let holders: Vec<u32> = holders.iter().map(|holder| holder.pid.unsigned_abs()).collect();
    assert_eq!(holders, fixture.anchor.pids());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_has_job_control() {
    let fixture = Fixture::new();
    let launch = Launch {
        program: Launch::argv(["bash", "--norc", "-i"]).program,
        // Otherwise it would write its history to a home.
        env: vec![EnvEdit::Set("HISTFILE".into(), "".into())],
        ..on_terminal(&fixture, "exit 0")
    };
    let process = fixture.start_launch(launch).await;
    // A stopped job can be continued, which needs a controlling terminal and its own group.
    process.write(b"sleep 600 &\nkill -STOP %1; wait -n; jobs\n".into(), None).await.unwrap();
    let seen = |process: &lastbyte_engine::Process, snapshot: &lastbyte_engine::Snapshot| {
        String::from_utf8_lossy(&read(process, snapshot, 0..snapshot.extent.len)).into_owned()
    };
    patiently("the job is told as stopped", async {
        let mut cursor = 0;
        loop {
            let snapshot = process.until_past(cursor).await;
            cursor = snapshot.extent.len;
            let text = seen(&process, &snapshot);
            assert!(!text.contains("no job control"), "{text}");
            if text.contains("Stopped") {
                break;
            }
        }
    })
    .await;
    process.write(b"kill -KILL %1; exit 7\nexit 7\n".into(), None).await.unwrap();
    assert_eq!(finish(&process).await.0.status, Status::Exited(7));
}

/// The command closes every descriptor of its terminal and opens it again by name: in between
/// nobody has it open, which is not an end of file.
#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_is_closed_and_reopened_is_not_at_its_end() {
    let fixture = Fixture::new();
    let script = "exec >/dev/null 2>&1 </dev/null; sleep 0.2; seq 20000 >/dev/tty; exit 3";
    let launch = Launch {
        program: Launch::shell(script).program,
        stdin: Stdin::Closed,
        ..on_terminal(&fixture, "exit 0")
    };
    let process = fixture.start_launch(launch).await;
    let (status, text) = finish_text(&process).await;
    assert_eq!(status, Status::Exited(3));
    assert!(text.ends_with("19999\r\n20000\r\n"), "{} bytes", text.len());
}

/// In the middle of a line, the first end of file only submits the line.
#[tokio::test(flavor = "multi_thread")]
async fn input_without_a_final_newline_can_be_ended() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(on_terminal(&fixture, "cat then print done")).await;
    process.write_and_close(b"abc".into(), None).await.unwrap();
    let (status, text) = finish_text(&process).await;
    assert_eq!((status, text.as_str()), (Status::Exited(0), "abcabcdone"));
}
