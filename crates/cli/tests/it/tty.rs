//! `run --tty` on a real terminal, which the engine provides.

use std::path::Path;

use lastbyte_engine::{Engine, Launch, Process, Settings, Status, Stdin, Streams, WindowSize};
use lastbyte_output::log::Piece;
use lastbyte_testkit::testchild;

use crate::harness::LASTBYTE;

/// A shell on a terminal of 40 rows and 100 columns.
struct Terminal {
    process: Process,
    _engine: Engine,
    state: tempfile::TempDir,
}

impl Terminal {
    async fn run(script: &str) -> Self {
        let state = tempfile::tempdir().unwrap();
        let engine = Engine::new(Settings::new(state.path())).unwrap();
        let script = script
            .replace("RUN", &format!("{} run --tty", *LASTBYTE))
            .replace("TESTCHILD", testchild().to_str().unwrap());
        let mut launch = Launch::shell(script);
        launch.streams = Streams::Pty(WindowSize { rows: 40, cols: 100 });
        launch.stdin = Stdin::Open;
        launch.cwd = Some(state.path().into());
        let process = engine.start(launch).await.expect("it starts").process;
        Self { process, _engine: engine, state }
    }

    fn text(&self) -> String {
        let snapshot = self.process.snapshot();
        let mut bytes = vec![0; snapshot.extent.len as usize];
        if !bytes.is_empty() {
            let piece = self.process.reader().read(&snapshot, 0, &mut bytes).unwrap();
            assert_eq!(piece, Piece::Bytes(bytes.len()));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    async fn shows(&self, what: &str) {
        let mut cursor = 0;
        let seen = async {
            while !self.text().contains(what) {
                cursor = self.process.until_past(cursor).await.extent.len;
            }
        };
        let patience = lastbyte_testkit::PATIENCE;
        assert!(tokio::time::timeout(patience, seen).await.is_ok(), "{what} in {:?}", self.text());
    }

    async fn types(&self, keys: &[u8]) {
        self.process.write(keys.to_vec(), None).await.unwrap();
    }

    async fn ends(&self) -> (Status, String) {
        let ended = tokio::time::timeout(lastbyte_testkit::PATIENCE, self.process.ended()).await;
        let status = ended.unwrap_or_else(|_| panic!("still there: {:?}", self.text())).status;
        (status, self.text())
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(Path::new(self.state.path()).join(name)).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_has_a_terminal_of_our_size() {
    let terminal = Terminal::run("RUN -- TESTCHILD is-tty then winsize").await;
    let (status, text) = terminal.ends().await;
    assert_eq!(status, Status::Exited(0));
    assert_eq!(text, "stdin stdout stderr\r\n40 100\r\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_size_of_our_terminal_reaches_the_command() {
    let terminal = Terminal::run("RUN -- TESTCHILD print-winsize-on-winch").await;
    terminal.shows("ready").await;
    terminal.process.resize(WindowSize { rows: 33, cols: 77 }).await.unwrap();
    let (status, text) = terminal.ends().await;
    assert_eq!(status, Status::Exited(0));
    assert!(text.contains("33 77"), "{text:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_goes_to_the_commands_terminal() {
    let terminal = Terminal::run("RUN 'echo up; exec sleep 600'; echo code $?").await;
    terminal.shows("up").await;
    terminal.types(b"\x03").await;
    let (_, text) = terminal.ends().await;
    assert!(text.ends_with("code 130\r\n"), "{text:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn our_terminal_is_restored_afterwards() {
    for (command, what) in [
        ("RUN 'stty raw -echo; exit 3'", "a command that changes its terminal"),
        ("RUN --timeout 200ms 'exec sleep 600'", "a timeout"),
        ("RUN --cwd /no/such/folder true", "a start that fails"),
        ("RUN 'kill -9 $$'", "a command that is killed"),
    ] {
        let script = format!("stty -a >before; {command}; stty -a >after");
        let terminal = Terminal::run(&script).await;
        terminal.ends().await;
        assert_eq!(terminal.file("before"), terminal.file("after"), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_terminal_is_raw_while_the_command_runs() {
    let terminal = Terminal::run("RUN 'echo up; exec cat'; echo code $?").await;
    // Ours is raw before it shows the first byte of the command's output.
    terminal.shows("up").await;
    terminal.types(b"abc\r\x04").await;
    let (_, text) = terminal.ends().await;
    // Echoed once, by the command's terminal; ours would echo it again.
    assert_eq!(text, "up\r\nabc\r\nabc\r\ncode 0\r\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_has_a_terminal_even_if_we_have_none() {
    let terminal = Terminal::run("echo typed | RUN -- TESTCHILD is-tty then winsize | cat").await;
    let (_, text) = terminal.ends().await;
    assert!(text.contains("stdin stdout stderr\r"), "{text:?}");
}
