//! Frames of clients, whatever they are.

use futures_util::StreamExt;
use lastbyte_testkit::{Corpus, fuzz_inputs};
use tokio::io::{AsyncRead, join, sink};
use tokio::runtime::Builder;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::OpCode;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::bounded::{Bounded, Messages};
use crate::Limits;

const MOST: usize = 40 << 10;

/// The messages that are read are those that the library reads from the same bytes in one piece: none is lost, cut,
/// joined with another or longer than allowed.
#[test]
fn no_frame_does_harm() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let limits = Limits { messages_bytes: 64 << 10, ..Limits::default() };
    let made = [
        vec![frame(0x81, b"{\"kind\":\"close_stdin\"}"), frame(0x89, b"ping"), frame(0x88, &[])],
        vec![frame(0x01, b"one"), frame(0x8a, &[]), frame(0x80, "\u{e9}".as_bytes())],
        vec![frame(0x82, &[7; 20_000]), frame(0x82, &[])],
        vec![frame(0x02, &[1; 17_000]), frame(0x00, &[2; 20_000]), frame(0x80, &[3])],
        vec![frame(0x82, &vec![0; MOST])],
    ];
    let made = made.map(|frames| frames.concat()).to_vec();
    // Headers without a mask, with a length of 16 and of 64 bits.
    let words =
        ["\u{2}\u{7e}\u{1}", "\u{1}\u{7f}", "\u{0}", "\u{9}\u{7e}", "\u{2}\u{7f}\u{0}\u{0}"];
    fuzz_inputs(5_000, Corpus { name: "websocket", made, words: &words }, |input| {
        runtime.block_on(async {
            let whole = messages(input).await;
            let room = Messages::new(&limits);
            let given = messages(Bounded::new(input, room.clone(), MOST)).await;
            assert!(given.iter().all(|message| message.len() <= MOST));
            assert_eq!(given, whole);
            let kind = |message: &Message| (message.is_text(), message.len().min(9));
            given.iter().map(kind).collect::<Vec<_>>()
        })
    });
}

async fn messages(stream: impl AsyncRead + Unpin) -> Vec<Message> {
    let config = WebSocketConfig::default().max_message_size(Some(MOST));
    let io = join(stream, sink());
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let mut messages = Vec::new();
    while let Some(Ok(message)) = socket.next().await {
        messages.push(message);
    }
    messages
}

/// With the mask that changes nothing.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let (is_final, opcode) = (first & 0x80 != 0, OpCode::from(first & 0x0f));
    let header = FrameHeader { is_final, opcode, mask: Some([0; 4]), ..FrameHeader::default() };
    let mut bytes = Vec::new();
    header.format(payload.len() as u64, &mut bytes).unwrap();
    bytes.extend_from_slice(payload);
    bytes
}
