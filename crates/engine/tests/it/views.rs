//! Views of real logs: with a dropped middle, two streams, or late output.

use lastbyte_engine::{Launch, LogSource, Process, Streams};
use lastbyte_output::log::{Quota, Stream};
use lastbyte_output::views::{Source, head_tail, lines, raw, search, text};
use lastbyte_testkit::pattern_bytes;

use crate::fixture::{Fixture, finish, patiently};

fn output(process: &Process) -> LogSource {
    LogSource::output(process.reader(), process.snapshot())
}

#[tokio::test(flavor = "multi_thread")]
async fn head_and_tail_of_a_log_with_a_dropped_middle_are_exact() {
    let fixture = Fixture::new();
    let mut launch = fixture.launch("write-bytes 3000000");
    launch.quota = Quota::new(256 << 10).unwrap();
    let process = fixture.start_launch(launch).await;
    patiently("it ends", process.ended()).await;
    let source = output(&process);
    let view = head_tail::native(&source, 0, 20_000).unwrap();
    let omitted = view.omitted.expect("most of it");
    assert_eq!(source.end(), 3_000_000);
    assert!(view.head == pattern_bytes(0..omitted.start));
    assert!(view.tail == pattern_bytes(omitted.end..3_000_000));
    assert_eq!(source.dropped().len(), 1);
    let coder = head_tail::coder(&source).unwrap().truncated.expect("cut");
    assert_eq!((coder.original_bytes, coder.omitted_bytes), (3_000_000, 3_000_000 - 32_768));

    let gone = source.dropped()[0].clone();
    let around = raw::since(&source, gone.start - 10, 20).unwrap();
    let want = [
        raw::Segment::Bytes {
            range: gone.start - 10..gone.start,
            bytes: pattern_bytes(gone.start - 10..gone.start),
        },
        raw::Segment::Dropped(gone.clone()),
        raw::Segment::Bytes {
            range: gone.end..gone.end + 10,
            bytes: pattern_bytes(gone.end..gone.end + 10),
        },
    ];
    assert_eq!(around.segments, want);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stream_can_be_viewed_alone() {
    let fixture = Fixture::new();
    let script = "for i in 1 2 3; do echo out $i; echo error $i >&2; done";
    let launch = Launch { streams: Streams::Split, ..Launch::shell(script) };
    let process = fixture.start_launch(launch).await;
    finish(&process).await;
    let errors = output(&process).only(Stream::Err);
    let lines = lines::first(&errors, 10, 1000).unwrap().lines;
    let texts: Vec<_> = lines.iter().map(|line| String::from_utf8_lossy(&line.text)).collect();
    assert_eq!(texts, ["error 1", "error 2", "error 3"]);
    let regex = search::compile("[23]$").unwrap();
    let query = search::Query {
        regex,
        reading: search::Reading::Plain,
        from: 0,
        before: 0,
        after: 0,
        max_matches: 10,
        max_bytes: 1000,
        max_scanned: 1000,
    };
    let found = search::search(&output(&process).only(Stream::Out), &query).unwrap();
    let found: Vec<_> =
        found.matches.iter().map(|m| String::from_utf8_lossy(&m.line.text).into_owned()).collect();
    assert_eq!(found, ["out 2", "out 3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_of_the_output_never_shows_late_output() {
    let fixture = Fixture::new();
    let process = fixture.start(r"print a\x1b[31mb\x1b[0m\n then leave-silent-holder").await;
    patiently("it ends", process.ended()).await;
    fixture.anchor.wait_for(1);
    let before = text::text(&output(&process), 0..1000, 1000).unwrap();
    assert_eq!(before.lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), ["ab"]);
    fixture.anchor.tell("print later");
    patiently("late output", process.until_past(12)).await;
    let after = text::text(&output(&process), 0..1000, 1000).unwrap();
    assert_eq!(before, after);
    let all = LogSource::all(process.reader(), process.snapshot());
    assert_eq!(text::text(&all, 0..1000, 1000).unwrap().lines.len(), 2);
}
