//! Deltas: each stream is complete and in order, and all come before the answer.

use lastbyte_testkit::pattern_bytes;
use serde_json::{Value, json};

use super::client::is_delta;
use super::fixture::{Fixture, result, run};

fn streamed(id: &str) -> Value {
    json!({"processId": id, "streamStdoutStderr": true})
}

#[tokio::test(flavor = "multi_thread")]
async fn streamed_output_comes_as_it_is_written_and_not_in_the_answer() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let request =
        client.request("command/exec", run("print early then eprint E then hold", streamed("s")));
    client.until_output("s", "stdout", b"early").await;
    client.until_output("s", "stderr", b"E").await;
    fixture.anchor.wait_for(1);
    fixture.anchor.tell("exit 5");
    let answer = client.answer(request).await;
    assert_eq!(result(&answer), (5, "", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_byte_of_both_streams_comes_before_the_answer() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let mut params =
        run("alternate 3000 then write-bytes 5000000 then write-bytes 3000000 err", streamed("s"));
    params["disableOutputCap"] = true.into();
    let request = client.request("command/exec", params);
    client.answer(request).await;
    let last = client.got.last().unwrap();
    assert_eq!(last["id"], request, "nothing comes after the answer");
    assert_eq!(client.output("s", "stdout"), pattern_bytes(0..5_003_000));
    assert_eq!(client.output("s", "stderr"), pattern_bytes(0..3_003_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_delta_that_reaches_the_cap_says_so() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    for (cap, text, reached) in
        [(0, "", true), (3, "abc", true), (6, "abcdef", true), (7, "abcdef", false)]
    {
        let id = format!("cap{cap}");
        let mut params = run("print abcdef", streamed(&id));
        params["outputBytesCap"] = cap.into();
        client.exec(params).await;
        let deltas: Vec<_> = client.got.iter().filter(|m| is_delta(m, &id, "stdout")).collect();
        assert_eq!(client.output(&id, "stdout"), text.as_bytes());
        assert_eq!(deltas.last().unwrap()["params"]["capReached"], reached);
        assert_eq!(
            deltas.iter().filter(|d| d["params"]["capReached"] == true).count(),
            usize::from(reached)
        );
        assert!(
            !client.got.iter().any(|m| is_delta(m, &id, "stderr")),
            "a silent stream has no delta"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_past_the_cap_is_discarded_without_blocking() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let mut params = run("write-bytes 100000000 then exit 6", streamed("s"));
    params["outputBytesCap"] = 10.into();
    let answer = client.exec(params).await;
    assert_eq!((result(&answer).0, &answer["result"]["stdoutBytes"]), (6, &json!(100_000_000)));
    assert_eq!(client.output("s", "stdout"), pattern_bytes(0..10));
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_all_output_is_one_stream() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let params = json!({"processId": "t", "tty": true, "size": {"rows": 31, "cols": 101}});
    let answer = client.exec(run("is-tty then winsize then eprint err", params)).await;
    assert_eq!(result(&answer), (0, "", ""));
    let want = b"stdin stdout stderr\r\n31 101\r\nerr";
    assert_eq!(client.output("t", "stdout"), want);
    let answer = client.exec(run("winsize", json!({"processId": "t", "tty": true}))).await;
    assert_eq!(
        (result(&answer).0, client.output("t", "stdout")),
        (0, [want, &b"24 80\r\n"[..]].concat())
    );
}
