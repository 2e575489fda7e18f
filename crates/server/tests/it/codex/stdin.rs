//! Input is queued in order and blocks nothing.

use serde_json::{Value, json};

use super::client::{Client, base64};
use super::fixture::{Fixture, fault, result, run};
use super::transport::Transport;

fn write(id: &str, bytes: &str, close: bool) -> Value {
    json!({"processId": id, "deltaBase64": base64(bytes), "closeStdin": close})
}

async fn call(client: &mut Client, params: Value) -> Value {
    client.call("command/exec/write", params).await
}

#[tokio::test(flavor = "multi_thread")]
async fn input_is_written_in_order_before_it_is_closed() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let params = run("cat then print | then hold", json!({"processId": "i", "streamStdin": true}));
    let begun = client.request("command/exec", params);
    for (bytes, close) in [("hello ", false), ("", false), ("world", true), ("", false), ("", true)]
    {
        let answer = call(&mut client, write("i", bytes, close)).await;
        assert_eq!(answer["result"], json!({}), "{bytes:?} {close}");
    }
    let late = call(&mut client, write("i", "x", false)).await;
    assert_eq!(fault(&late), (-32600, "stdin is already closed"));
    fixture.anchor.wait_for(1);
    fixture.anchor.tell("exit 0");
    assert_eq!(result(&client.answer(begun).await), (0, "hello world|", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn input_without_stream_stdin_is_refused() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let begun = client.request("command/exec", run("hold", json!({"processId": "i"})));
    let refused = call(&mut client, write("i", "x", false)).await;
    assert_eq!(fault(&refused), (-32600, "stdin streaming is not enabled for this command/exec"));
    client.call("command/exec/terminate", json!({"processId": "i"})).await;
    client.answer(begun).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_for_a_command_that_closed_its_stdin_is_discarded() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let params = run(
        "close-stdin then print up then hold",
        json!({"processId": "i", "streamStdin": true, "streamStdoutStderr": true}),
    );
    let begun = client.request("command/exec", params);
    client.until_output("i", "stdout", b"up").await;
    for _ in 0..3 {
        assert_eq!(call(&mut client, write("i", "x", false)).await["result"], json!({}));
    }
    client.call("command/exec/terminate", json!({"processId": "i"})).await;
    client.answer(begun).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_input_on_a_terminal_types_a_newline_and_end_of_file() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let params = run("cat then print over then hold", json!({"processId": "t", "tty": true}));
    let begun = client.request("command/exec", params);
    assert_eq!(call(&mut client, write("t", "ab", true)).await["result"], json!({}));
    assert_eq!(call(&mut client, write("t", "", true)).await["result"], json!({}));
    // Once as the echo and once from the command.
    client.until_output("t", "stdout", b"ab\r\nab\r\nover").await;
    fixture.anchor.wait_for(1);
    fixture.anchor.tell("exit 0");
    assert_eq!(result(&client.answer(begun).await).0, 0);
}

/// A command that reads nothing, and far more input than any pipe holds.
fn flooded(client: &mut Client, id: &str, more: Value) -> (i64, Vec<i64>) {
    let mut more = more;
    more["processId"] = id.into();
    more["streamStdin"] = true.into();
    let begun = client.request("command/exec", run("hold", more));
    let chunk = "x".repeat(4096);
    let writes = (0..200).map(|_| client.request("command/exec/write", write(id, &chunk, false)));
    (begun, writes.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_input_blocks_no_other_request() {
    for (transport, tty) in on_every_transport() {
        let fixture = Fixture::new();
        let mut client = transport.client(&fixture).await;
        let (begun, writes) = flooded(&mut client, "a", json!({"tty": tty}));
        let ended = client.request("command/exec/terminate", json!({"processId": "a"}));
        assert_eq!(client.answer(ended).await["result"], json!({}));
        assert_eq!(result(&client.answer(begun).await).0, 137);
        for write in writes {
            assert_eq!(client.answer(write).await["result"], json!({}));
        }
        let (begun, _) = flooded(&mut client, "b", json!({"tty": tty, "timeoutMs": 500}));
        assert_eq!(result(&client.answer(begun).await).0, 124);
        fixture.anchor.wait_for_at_most(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_input_is_dropped_with_its_connection() {
    for (transport, tty) in on_every_transport() {
        let fixture = Fixture::new();
        let mut client = transport.client(&fixture).await;
        let (_, writes) = flooded(&mut client, "a", json!({"tty": tty}));
        client.answer(writes[199]).await;
        fixture.anchor.wait_for(1);
        client.close();
        fixture.anchor.wait_for_at_most(0);
    }
}

/// Each with and without a terminal.
fn on_every_transport() -> impl Iterator<Item = (Transport, bool)> {
    Transport::ALL.into_iter().flat_map(|transport| [(transport, false), (transport, true)])
}

#[tokio::test(flavor = "multi_thread")]
async fn input_past_the_queue_is_refused_at_once() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let begun =
        client.request("command/exec", run("hold", json!({"processId": "i", "streamStdin": true})));
    let large = "x".repeat(10 << 20);
    assert_eq!(call(&mut client, write("i", &large, false)).await["result"], json!({}));
    let refused = call(&mut client, write("i", &large, false)).await;
    assert_eq!(fault(&refused).0, -32001);
    assert_eq!(call(&mut client, write("i", "fits", false)).await["result"], json!({}));
    client.call("command/exec/terminate", json!({"processId": "i"})).await;
    assert_eq!(result(&client.answer(begun).await).0, 137);
}
