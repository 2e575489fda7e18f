//! `GET …/output/search`: matching lines, their offsets, and why the search stopped.

use lastbyte_server::Limits;
use serde_json::{Value, json};

use crate::harness::{Answer, Server};

async fn ended(server: &Server, actions: &str, more: Value) -> String {
    let path = server.path_of(actions, more).await;
    server.connect().await.post(&format!("{path}/wait"), &json!({ "exit": true })).await;
    path
}

async fn search(server: &Server, path: &str, query: &str) -> Answer {
    server.connect().await.get(&format!("{path}/output/search?{query}")).await
}

/// The lines found, the cursor to continue from and the reason.
fn found(answer: &Answer) -> (Vec<String>, u64, String) {
    let answer = answer.json();
    let lines = answer["matches"].as_array().unwrap().iter();
    let lines = lines.map(|found| found["line"]["text"].as_str().unwrap().to_owned()).collect();
    (lines, answer["next"].as_u64().unwrap(), answer["stopped"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_match_has_its_offset_and_context() {
    let server = Server::start().await;
    let path = ended(&server, r"print zero\none\xff\ntwo\n", json!({})).await;
    let answer = search(&server, &path, "pattern=o(?-u:n).&before=1&after=1").await.json();
    let line = |text: &str, start: u64, end: u64| json!({ "text": text, "range": { "start": start, "end": end } });
    assert_eq!(
        answer["matches"],
        json!([{
            "number": 1,
            "line": line("one\u{fffd}", 5, 10),
            "hits": [{ "start": 5, "end": 8 }],
            "before": [line("zero", 0, 5)],
            "after": [line("two", 10, 14)],
        }])
    );
    assert_eq!((&answer["total"], &answer["phase"]), (&json!(14), &json!("ended")));
    assert_eq!((&answer["stopped"], &answer["next"]), (&json!("end"), &json!(14)));
}

#[tokio::test]
async fn a_search_that_stops_early_says_so_and_can_be_continued() {
    let server = Server::start().await;
    let path = ended(&server, r"print a1\nb\na2\na3\n", json!({})).await;
    let first = found(&search(&server, &path, "pattern=a&max_matches=2").await);
    assert_eq!(first, (vec!["a1".into(), "a2".into()], 8, "matches".into()));
    let rest = found(&search(&server, &path, "pattern=a&from=8").await);
    assert_eq!(rest, (vec!["a3".into()], 11, "end".into()));
}

#[tokio::test]
async fn text_is_matched_as_a_person_sees_it_unless_raw_is_asked_for() {
    let server = Server::start().await;
    let actions = r"print \x1b[31mer\x1b[0mror\r\n50%\r99%\r\n\x1b]0;title\x07ok\n";
    let path = ended(&server, actions, json!({})).await;
    let answer = search(&server, &path, "pattern=^error$").await.json();
    let found = &answer["matches"][0];
    assert_eq!(found["line"], json!({ "text": "error", "range": { "start": 0, "end": 16 } }));
    assert_eq!(found["hits"], json!([{ "start": 5, "end": 14 }]));
    for (pattern, plain, raw) in [
        ("^error$", 1, 0),
        ("^99%25$", 1, 0),
        ("^50%25$", 1, 0),
        ("title", 0, 1),
        (r"\x1b", 0, 2),
        ("^ok$", 1, 0),
    ] {
        for (option, want) in [("", plain), ("&raw=false", plain), ("&raw=true", raw)] {
            let query = format!("pattern={}{option}", pattern.replace('\\', "%5C"));
            let found = self::found(&search(&server, &path, &query).await);
            assert_eq!(found.0.len(), want, "{pattern} {option}");
        }
    }
}

#[tokio::test]
async fn split_streams_can_be_searched_separately() {
    let server = Server::start().await;
    let actions = r"print out\n then eprint err\n";
    let path = ended(&server, actions, json!({ "streams": "split" })).await;
    let all = search(&server, &path, "pattern=.").await;
    assert_eq!(found(&all).0.len(), 2);
    let only = search(&server, &path, "pattern=.&stream=stderr").await;
    assert_eq!(found(&only).0, ["err"]);
}

#[tokio::test]
async fn dropped_bytes_are_reported() {
    let server = Server::start().await;
    let actions = r"print begin\n then write-bytes 1000000 then print \nend\n";
    let path = ended(&server, actions, json!({ "quota_bytes": 131_072 })).await;
    let answer = search(&server, &path, "pattern=^(begin|end)$").await;
    assert_eq!(found(&answer).0, ["begin", "end"]);
    let numbers = answer.json()["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found.get("number").cloned())
        .collect::<Vec<_>>();
    assert_eq!(numbers, [Some(json!(0)), None], "nobody knows how many lines were dropped");
    assert_eq!(answer.json()["dropped"].as_array().unwrap().len(), 1);
}

/// Not `end`, because the missing lines may match.
#[tokio::test]
async fn a_search_of_a_truncated_log_fails() {
    let server = Server::start().await;
    let path = ended(&server, r"write-bytes 100000 then print \nend\n", json!({})).await;
    let process = server.engine.get(path.rsplit('/').next().unwrap().parse().unwrap()).unwrap();
    let log = process.log_file().unwrap();
    std::fs::File::options().write(true).open(log).unwrap().set_len(70_000).unwrap();
    let refused = search(&server, &path, "pattern=^end$").await;
    assert_eq!((refused.status, refused.code().as_str()), (500, "failed"));
}

#[tokio::test]
async fn an_invalid_search_is_refused() {
    let server = Server::start().await;
    let path = ended(&server, "print x", json!({})).await;
    for (query, code) in [
        ("", "invalid_request"),
        ("pattern=(", "invalid_pattern"),
        ("pattern=x&max_matches=0", "invalid_request"),
        ("pattern=x&max_matches=10001", "invalid_request"),
        ("pattern=x&before=256", "invalid_request"),
        ("pattern=x&form=3", "invalid_request"),
    ] {
        let refused = search(&server, &path, query).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, code), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_take_turns_and_all_are_answered() {
    let server = Server::with(Limits { long_reads: 1, ..Limits::default() }).await;
    let path = ended(&server, "write-bytes 3000000", json!({})).await;
    let mut searches = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let mut client = server.connect().await;
        let path = format!("{path}/output/search?pattern=nowhere{{3}}");
        searches.spawn(async move { client.get(&path).await.status });
    }
    assert_eq!(searches.join_all().await, [200; 8]);
}
