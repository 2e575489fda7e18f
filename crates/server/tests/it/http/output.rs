//! `GET …/output`: views, cursors and waiting.

use std::sync::Arc;

use lastbyte_testkit::{Anchor, pattern_bytes};
use serde_json::{Value, json};

use crate::harness::{Answer, Server, env, held};

async fn output(server: &Server, path: &str, query: &str) -> Answer {
    let answer = server.connect().await.get(&format!("{path}/output?{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

/// Starts a child and waits for its end.
async fn ended(server: &Server, actions: &str, more: Value) -> String {
    let path = server.path_of(actions, more).await;
    server.connect().await.post(&format!("{path}/wait"), &json!({ "exit": true })).await;
    path
}

#[tokio::test]
async fn raw_output_has_the_bytes_and_the_facts_in_its_head() {
    let server = Server::start().await;
    let path = ended(&server, r"print a\xff\0\nb then exit 2", json!({})).await;
    let answer = output(&server, &path, "").await;
    assert_eq!(answer.body, b"a\xff\0\nb".as_slice());
    assert_eq!(answer.head("content-type"), Some("application/octet-stream"));
    assert_eq!(answer.head("content-length"), Some("5"));
    let head = ["from", "next", "total", "final-len", "phase", "log-open"];
    let head = head.map(|name| answer.head(&format!("lastbyte-{name}")).unwrap().to_owned());
    assert_eq!(head, ["0", "5", "5", "5", "ended", "false"]);
    assert_eq!(answer.head("lastbyte-dropped"), None);
    let ending: Value = serde_json::from_str(answer.head("lastbyte-ending").unwrap()).unwrap();
    assert_eq!(ending["status"], json!({ "kind": "exited", "code": 2 }));
}

#[tokio::test]
async fn a_cursor_counts_from_the_beginning_or_from_the_end() {
    let server = Server::start().await;
    let path = ended(&server, "print abcdef", json!({})).await;
    for (query, from, want) in [
        ("from=2", 2, "cdef"),
        ("from=2&max_bytes=3", 2, "cde"),
        ("from=-2", 4, "ef"),
        ("from=-100", 0, "abcdef"),
        ("from=6", 6, ""),
        ("from=1000", 6, ""),
    ] {
        let answer = output(&server, &path, query).await;
        assert_eq!(answer.body, want, "{query}");
        assert_eq!(answer.number("lastbyte-from"), from);
        assert_eq!(answer.number("lastbyte-next"), from + want.len() as u64);
    }
}

#[tokio::test]
async fn output_longer_than_a_piece_is_complete() {
    let server = Server::start().await;
    let length = 5_000_000;
    let path = ended(&server, &format!("write-bytes {length}"), json!({})).await;
    let answer = output(&server, &path, &format!("max_bytes={length}")).await;
    assert!(answer.body == pattern_bytes(0..length), "not the bytes that were written");
}

#[tokio::test]
async fn a_dropped_range_is_skipped_by_the_cursor_and_named() {
    let server = Server::start().await;
    let length = 1_000_000;
    let more = json!({ "quota_bytes": 131_072 });
    let path = ended(&server, &format!("write-bytes {length}"), more).await;
    let (mut at, mut read) = (0, 0);
    loop {
        let answer = output(&server, &path, &format!("from={at}")).await;
        let (from, next) = (answer.number("lastbyte-from"), answer.number("lastbyte-next"));
        assert_eq!(answer.body, pattern_bytes(from..next));
        let dropped = answer.head("lastbyte-dropped").unwrap();
        if from > at {
            assert_eq!(dropped, format!("{at}-{from}"), "what the cursor skipped is named");
        }
        read += next - from;
        at = next;
        if at == length {
            break;
        }
    }
    assert!(read <= 131_072 && read > 64_000, "{read} bytes were kept");
}

/// An answer announces nothing that can be dropped while it is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_complete_while_the_quota_drops_earlier_bytes() {
    let server = Server::start().await;
    let path = server.path_of("flood", json!({ "quota_bytes": 131_072 })).await;
    let mut client = server.connect().await;
    let mut at = 0;
    for _ in 0..300 {
        let answer = client.get(&format!("{path}/output?from={at}&max_bytes=1000000")).await;
        let (from, next) = (answer.number("lastbyte-from"), answer.number("lastbyte-next"));
        assert_eq!(next - from, answer.body.len() as u64);
        assert!(answer.body == pattern_bytes(from..next), "not what was written");
        at = next;
    }
}

#[tokio::test]
async fn one_stream_can_be_read_alone() {
    let server = Server::start().await;
    let more = json!({ "streams": "split" });
    let actions = "print aa then eprint BB then print cc then eprint DD";
    let path = ended(&server, actions, more).await;
    assert_eq!(output(&server, &path, "stream=stdout").await.body, "aacc");
    assert_eq!(output(&server, &path, "stream=stderr").await.body, "BBDD");
    let head = &output(&server, &path, "stream=stderr&view=head_tail").await.json()["content"];
    assert_eq!(head["head"], "BBDD");
}

#[tokio::test]
async fn every_view_says_what_it_left_out() {
    let server = Server::start().await;
    let line = r"print a\x20line\n";
    let path = ended(&server, &vec![line; 1000].join(" then "), json!({})).await;
    let view = output(&server, &path, "view=head_tail&max_bytes=1000").await.json();
    let (content, total) = (&view["content"], view["total"].as_u64().unwrap());
    let length = |part: &Value| part.as_str().unwrap().len() as u64;
    let omitted = &content["omitted"];
    assert_eq!(omitted["start"].as_u64().unwrap(), length(&content["head"]));
    assert_eq!(omitted["end"].as_u64().unwrap(), total - length(&content["tail"]));
    assert_eq!((&view["next"], &view["final_len"]), (&json!(total), &json!(total)));
}

#[tokio::test]
async fn lines_can_be_the_first_or_the_last() {
    let server = Server::start().await;
    let path = ended(&server, r"print one\ntwo\nthree\n", json!({})).await;
    let texts = async |query: &str| -> Vec<String> {
        let view = output(&server, &path, query).await.json();
        let lines = view["content"]["lines"].as_array().unwrap().clone();
        lines.iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts("view=lines&first=2").await, ["one", "two"]);
    assert_eq!(texts("view=lines&last=1").await, ["three"]);
    assert_eq!(texts("view=lines").await, ["one", "two", "three"]);
    assert_eq!(texts("view=text&from=4").await, ["two", "three"]);
}

#[tokio::test]
async fn a_waiting_read_is_woken_by_a_byte_and_by_the_ending() {
    let server = Server::start().await;
    let (anchor, path) = server.told(json!({})).await;
    let waiting = output(&server, &path, "from=0&wait_ms=60000");
    let (answer, ()) = tokio::join!(waiting, async { anchor.tell("print x") });
    assert_eq!(answer.body, "x");
    let waiting = output(&server, &path, "from=1&wait_ms=60000");
    let (answer, ()) = tokio::join!(waiting, async { anchor.tell("exit 0") });
    assert_eq!(
        (answer.body.as_ref(), answer.head("lastbyte-phase")),
        (b"".as_slice(), Some("ended"))
    );
    let answer = output(&server, &path, "from=1&wait_ms=60000&late=true").await;
    assert_eq!(answer.head("lastbyte-log-open"), Some("false"), "answered at once");
}

#[tokio::test]
async fn late_output_is_shown_only_on_request() {
    let server = Server::start().await;
    let anchor = Arc::new(Anchor::listen());
    let path = ended(&server, "leave-tail", json!({ "env": env(&anchor) })).await;
    held(&anchor, 1).await;
    let answer = output(&server, &path, "from=4&wait_ms=1").await;
    assert_eq!(
        (answer.body.as_ref(), answer.head("lastbyte-log-open")),
        (b"".as_slice(), Some("true"))
    );
    let waiting = output(&server, &path, "from=4&wait_ms=60000&late=true");
    let (answer, ()) = tokio::join!(waiting, async { anchor.tell("print later") });
    assert_eq!(
        (answer.body.as_ref(), answer.number("lastbyte-final-len")),
        (b"later".as_slice(), 4)
    );
    let answer = output(&server, &path, "").await;
    assert_eq!((answer.body.as_ref(), answer.number("lastbyte-total")), (b"tail".as_slice(), 9));
}

async fn ask(server: &Server, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut client = server.connect().await;
    Answer::whole(client.begin_with(method, path, headers, "".into()).await).await
}

/// A length in a 304 would be mistaken for that of the output.
#[tokio::test]
async fn a_304_has_no_content_length() {
    let server = Server::start().await;
    let path = ended(&server, "print abc", json!({})).await;
    let path = format!("{path}/output");
    let head = ask(&server, "HEAD", &path, &[]).await;
    assert_eq!((head.status, head.head("content-length")), (200, Some("3")));
    let tag = head.head("etag").unwrap().to_owned();
    for method in ["HEAD", "GET"] {
        let known = ask(&server, method, &path, &[("if-none-match", &tag)]).await;
        let found = (known.status, known.head("content-length"), known.head("etag"));
        assert_eq!(found, (304, None, Some(&*tag)), "{method}");
        assert_eq!(known.head("transfer-encoding"), None, "{method}");
    }
}

#[tokio::test]
async fn a_closed_log_supports_ranges_and_conditional_requests() {
    let server = Server::start().await;
    let length = 300_000;
    let path = ended(&server, &format!("write-bytes {length}"), json!({})).await;
    let path = format!("{path}/output");
    let ask = async |headers: &[(&str, &str)]| ask(&server, "GET", &path, headers).await;
    let whole = ask(&[]).await;
    assert_eq!(whole.head("accept-ranges"), Some("bytes"));
    let tag = whole.head("etag").unwrap().to_owned();
    let part = ask(&[("range", "bytes=100000-299999")]).await;
    assert_eq!(
        (part.status, part.head("content-range")),
        (206, Some("bytes 100000-299999/300000"))
    );
    assert!(part.body == pattern_bytes(100_000..length), "not the bytes that were asked for");
    assert_eq!(part.number("lastbyte-from"), 100_000);
    let missing = ask(&[("range", "bytes=300000-")]).await;
    assert_eq!((missing.status, missing.head("content-range")), (416, Some("bytes */300000")));
    let known = ask(&[("if-none-match", &tag)]).await;
    assert_eq!((known.status, known.body.len(), known.head("etag")), (304, 0, Some(&*tag)));
    let other = ask(&[("range", "bytes=0-0"), ("if-range", "\"other\"")]).await;
    assert_eq!((other.status, other.body.len()), (200, 300_000));
}

#[tokio::test]
async fn a_range_counts_within_the_answer() {
    let server = Server::start().await;
    let path = ended(&server, "write-bytes 5000", json!({})).await;
    let mut client = server.connect().await;
    let path = format!("{path}/output?from=1000&max_bytes=3000");
    let answer = client.begin_with("GET", &path, &[("range", "bytes=-10")], "".into()).await;
    let part = Answer::whole(answer).await;
    assert_eq!((part.status, part.head("content-range")), (206, Some("bytes 2990-2999/3000")));
    assert_eq!(part.number("lastbyte-from"), 3990);
    assert_eq!(part.body, pattern_bytes(3990..4000));
}

#[tokio::test]
async fn one_of_two_streams_has_no_etag_and_no_ranges() {
    let server = Server::start().await;
    let path = ended(&server, "print out then eprint err", json!({ "streams": "split" })).await;
    let mut client = server.connect().await;
    let path = format!("{path}/output?stream=stderr");
    let answer = client.begin_with("GET", &path, &[("range", "bytes=1-1")], "".into()).await;
    let answer = Answer::whole(answer).await;
    assert_eq!((answer.status, answer.head("etag"), &answer.body[..]), (200, None, &b"err"[..]));
}

#[tokio::test]
async fn outputs_of_equal_length_with_other_dropped_bytes_have_other_etags() {
    let server = Server::start().await;
    let mut tags = Vec::new();
    for quota in [131_072, 262_144, 2_000_000] {
        let more = json!({ "quota_bytes": quota });
        let path = ended(&server, "write-bytes 1000000", more).await;
        tags.push(output(&server, &path, "").await.head("etag").unwrap().to_owned());
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 3, "{tags:?}");
}

#[tokio::test]
async fn an_open_log_has_no_etag_and_no_ranges() {
    let server = Server::start().await;
    let (anchor, path) = server.told(json!({})).await;
    anchor.tell("print abc");
    let past = json!({ "output_past": 2 });
    server.connect().await.post(&format!("{path}/wait"), &past).await;
    let mut client = server.connect().await;
    let range = [("range", "bytes=1-1")];
    let answer = client.begin_with("GET", &format!("{path}/output"), &range, "".into()).await;
    let answer = Answer::whole(answer).await;
    assert_eq!((answer.status, answer.head("etag"), &answer.body[..]), (200, None, &b"abc"[..]));
}

#[tokio::test]
async fn nothing_is_compressed() {
    let server = Server::start().await;
    let path = ended(&server, "write-bytes 300000", json!({})).await;
    let mut client = server.connect().await;
    for below in ["output", "output?view=text&max_bytes=300000"] {
        let takes = [("accept-encoding", "gzip, deflate, br, zstd")];
        let path = format!("{path}/{below}");
        let answer = client.begin_with("GET", &path, &takes, "".into()).await;
        let answer = Answer::whole(answer).await;
        assert_eq!((answer.status, answer.head("content-encoding")), (200, None), "{below}");
        assert!(answer.body.len() >= 300_000, "{below}: {}", answer.body.len());
    }
}

#[tokio::test]
async fn a_screen_is_what_a_terminal_shows() {
    let server = Server::start().await;
    let print = r"print one\r\n\x1b[31mtwo\x1b[0m\x1b]2;name\x07 then exit 0";
    let path = ended(&server, print, json!({ "tty": { "rows": 3, "cols": 20 } })).await;
    let answer = output(&server, &path, "view=screen&ansi=true").await.json();
    let screen = &answer["content"]["screen"];
    assert_eq!(screen["lines"], json!(["one", "two", ""]));
    let facts = ["rows", "cols", "cursor", "title", "alternate"].map(|name| screen[name].clone());
    let want = [json!(3), json!(20), json!({ "row": 1, "col": 3 }), json!("name"), json!(false)];
    assert_eq!(facts, want);
    assert_eq!((&answer["from"], &answer["next"]), (&json!(0), &answer["total"]));
    assert!(screen["ansi_lines"][1].as_str().unwrap().contains("\x1b[31mtwo"), "{screen}");
    assert!(screen["ansi_state"].as_str().unwrap().contains("two"), "{screen}");
    assert_eq!(screen["ansi_at"], answer["total"]);
    // In the middle of the sequence that colours the second line.
    let open = output(&server, &path, "view=screen&ansi=true&at=7").await.json();
    assert_eq!((&open["next"], &open["content"]["screen"]["ansi_at"]), (&json!(7), &json!(6)));
    let then = output(&server, &path, "view=screen&at=4&rows=2&cols=2").await.json();
    assert_eq!(then["content"]["screen"]["lines"], json!(["on", "e"]));
    assert_eq!((&then["next"], then["content"]["screen"].get("ansi_lines")), (&json!(4), None));
}

#[tokio::test]
async fn a_screen_follows_the_size_of_the_terminal() {
    let server = Server::start().await;
    let start = json!({ "tty": { "rows": 3, "cols": 20 }, "stdin": "open" });
    let path = server.path_of("print abcdef then hold", start).await;
    let size = json!({ "rows": 2, "cols": 4 });
    let client = &mut server.connect().await;
    assert_eq!(client.post(&format!("{path}/resize"), &size).await.status, 204);
    client.post(&format!("{path}/wait"), &json!({ "output_past": 5 })).await;
    let screen = output(&server, &path, "view=screen").await.json();
    assert_eq!(screen["content"]["screen"]["lines"], json!(["abcd", "ef"]));
}

#[tokio::test]
async fn what_a_pipe_has_needs_no_carriage_returns_on_a_screen() {
    let server = Server::start().await;
    let path = ended(&server, r"print one\ntwo then exit 0", json!({})).await;
    let screen = output(&server, &path, "view=screen&rows=2").await.json();
    assert_eq!(screen["content"]["screen"]["lines"], json!(["one", "two"]));
}

#[tokio::test]
async fn a_screen_that_cannot_be_is_refused() {
    let server = Server::start().await;
    let path = ended(&server, "exit 0", json!({})).await;
    for (query, want) in [
        ("view=screen&from=1", "`from` cannot be combined with `view=screen`"),
        ("view=text&rows=3", "`at`, `rows`, `cols` and `ansi` need `view=screen`"),
        ("view=screen&rows=0", "`rows` must be from 1 to 500"),
        ("view=screen&cols=501", "`cols` must be from 1 to 500"),
    ] {
        let answer = server.connect().await.get(&format!("{path}/output?{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
        assert_eq!(answer.json()["error"]["message"], want, "{query}");
    }
}
