//! The events of a process on their way to the client.
//!
//! They are read from the log, so a client that does not read them makes no process wait.

use base64_simd::STANDARD;
use tokio::sync::watch;
use tokio::task::coop::consume_budget;

use super::process::{Entry, State};
use super::record::{Event, Exited};
use crate::doors::rpc::send_queue::SendQueue;
use crate::doors::rpc::to_json;

/// Sends every event past this number, in order, as fast as the client takes them.
pub(super) async fn push(
    id: String,
    state: watch::Receiver<State>,
    after: u64,
    send_queue: SendQueue,
) {
    let Some(record) = Entry::record(state).await else { return };
    let reader = record.process.reader();
    let id = to_json(&id);
    let mut seq = after;
    loop {
        record.until_past(seq).await;
        seq += 1;
        let event = record.events.borrow().get(seq);
        let text = match event {
            None => return,
            Some(Event::Output(chunk)) => {
                output(&id, seq, record.stream_name(chunk.stream), &record.bytes(&reader, &chunk))
            }
            Some(Event::Exited(Exited { code, sandbox_denied, .. })) => {
                let members = format!(r#","exitCode":{code},"sandboxDenied":{sandbox_denied}"#);
                notification("exited", &id, seq, &members)
            }
            Some(Event::Closed) => notification("closed", &id, seq, ""),
        };
        let message = send_queue.output_message(text).await;
        send_queue.send(message);
        consume_budget().await;
    }
}

/// Written by hand, so that the bytes are encoded into the message itself.
fn output(id: &str, seq: u64, stream: &str, bytes: &[u8]) -> String {
    let mut text = String::with_capacity(id.len() + bytes.len() / 3 * 4 + 128);
    text.push_str(r#"{"method":"process/output","params":{"processId":"#);
    text.push_str(id);
    text.push_str(&format!(r#","seq":{seq},"stream":"{stream}","chunk":""#));
    STANDARD.encode_append(bytes, &mut text);
    text.push_str(r#""}}"#);
    text
}

fn notification(kind: &str, id: &str, seq: u64, members: &str) -> String {
    format!(r#"{{"method":"process/{kind}","params":{{"processId":{id},"seq":{seq}{members}}}}}"#)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn events_are_json() {
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let id = to_json("a\"\n");
        let want = json!({"method": "process/output", "params":
            {"processId": "a\"\n", "seq": 7, "stream": "pty", "chunk": "aGk="}});
        assert_eq!(parse(&output(&id, 7, "pty", b"hi")), want);
        let want = json!({"method": "process/closed", "params": {"processId": "a\"\n", "seq": 8}});
        assert_eq!(parse(&notification("closed", &id, 8, "")), want);
    }
}
