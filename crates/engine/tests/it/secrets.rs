//! Secrets in the output of real children.

use std::time::Duration;

use lastbyte_engine::{Launch, Streams, WindowSize};
use lastbyte_output::log::Stream;
use lastbyte_output::mask::Secret;

use crate::fixture::{Fixture, HOUR, drain, finish, patiently, read, read_stream};

fn with_secret(launch: Launch, value: &str) -> Launch {
    Launch { secrets: vec![Secret::new("TOKEN", value).unwrap()], ..launch }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_stream_is_masked_by_itself() {
    let fixture = Fixture::new();
    let script = "printf hun; printf hun >&2; printf 'ter2 '; printf 'ters' >&2";
    let launch = Launch { streams: Streams::Split, ..Launch::shell(script) };
    let process = fixture.start_launch(with_secret(launch, "hunter2")).await;
    let (ending, _) = finish(&process).await;
    let snapshot = process.snapshot();
    let [out, error] =
        [Stream::Out, Stream::Err].map(|stream| read_stream(&process, &snapshot, stream));
    assert_eq!((out.as_slice(), error.as_slice()), (&b"***TOKEN*** "[..], &b"hunters"[..]));
    assert_eq!(ending.masked, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_with_colours_and_line_ends_is_masked() {
    let fixture = Fixture::new();
    let script = r#"printf '%s\n' "$TOKEN"; printf '\033[1mtwo\nli\033[31mnes\033[0m.'"#;
    let streams = Streams::Pty(WindowSize { rows: 24, cols: 80 });
    let launch = Launch { streams, ..Launch::shell(script) };
    let process = fixture.start_launch(with_secret(launch, "two\nlines")).await;
    let (ending, bytes) = finish(&process).await;
    let want = "***TOKEN***\r\n\u{1b}[1m***TOKEN***\u{1b}[0m.";
    assert_eq!((String::from_utf8_lossy(&bytes).as_ref(), ending.masked), (want, 2));
}

/// The output ends in the middle of what may be a secret, and others hold it open.
#[tokio::test(flavor = "multi_thread")]
async fn late_output_is_masked_and_the_ending_has_the_last_byte() {
    for (secret, at_the_ending, late) in
        [("illustrious", "tail", "tail***TOKEN***!"), ("aillustrious", "t", "t***TOKEN***!")]
    {
        let fixture = Fixture::new();
        let mut launch = with_secret(fixture.launch("leave-tail"), secret);
        launch.drain = drain(Duration::from_secs(1), HOUR);
        let process = fixture.start_launch(launch).await;
        let (ending, bytes) = finish(&process).await;
        assert_eq!(String::from_utf8_lossy(&bytes), at_the_ending);
        assert_eq!(ending.final_len, at_the_ending.len() as u64);
        fixture.anchor.wait_for(1);
        fixture.anchor.tell("print lustrious!");
        let len = late.len() as u64;
        let snapshot = patiently("late output", process.until_past(len - 1)).await;
        assert_eq!(String::from_utf8_lossy(&read(&process, &snapshot, 0..len)), late);
        fixture.anchor.tell("exit 0");
    }
}
