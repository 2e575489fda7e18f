//! A follower that can be cut off after any byte.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

use crate::harness::{Client, Server};

pub(in crate::http) struct Follower {
    /// Kept so that the connection stays open.
    _client: Client,
    body: Incoming,
    text: String,
    /// The number of bytes before the connection breaks.
    left: usize,
}

#[derive(Debug)]
pub(in crate::http) struct Told {
    pub(in crate::http) id: String,
    pub(in crate::http) name: String,
    pub(in crate::http) data: Value,
}

impl Follower {
    pub(in crate::http) async fn new(
        server: &Server,
        path: &str,
        query: &str,
        last: Option<&str>,
    ) -> Self {
        let mut client = server.connect().await;
        let headers: Vec<_> = last.iter().map(|id| ("last-event-id", *id)).collect();
        let path = format!("{path}/follow{query}");
        let answer = client.begin_with("GET", &path, &headers, "".into()).await;
        assert!(answer.status().is_success(), "{answer:?}");
        let body = answer.into_body();
        Self { _client: client, body, text: String::new(), left: usize::MAX }
    }

    /// Breaks the connection after this many bytes.
    pub(in crate::http) fn cut_after(mut self, bytes: usize) -> Self {
        self.left = bytes;
        self
    }

    /// Whether the server ended the stream, rather than a break.
    pub(in crate::http) fn is_over(&self) -> bool {
        self.left > 0
    }

    /// The next event; `None` at the end or a break.
    pub(in crate::http) async fn next(&mut self) -> Option<Told> {
        loop {
            while let Some((piece, rest)) = self.text.split_once("\n\n") {
                let told = told(piece);
                self.text = rest.to_owned();
                if told.is_some() {
                    return told;
                }
            }
            if self.left == 0 {
                return None;
            }
            let frame = self.body.frame().await?.unwrap().into_data().unwrap();
            let count = frame.len().min(self.left);
            self.left -= count;
            self.text.push_str(&String::from_utf8_lossy(&frame[..count]));
        }
    }
}

/// `None` for a keep-alive comment.
fn told(piece: &str) -> Option<Told> {
    let field = |name: &str| {
        let prefix = format!("{name}: ");
        piece.lines().find_map(|line| line.strip_prefix(&prefix))
    };
    let data = serde_json::from_str(field("data")?).unwrap();
    Some(Told { id: field("id").unwrap().into(), name: field("event").unwrap().into(), data })
}

/// The bytes that an event carries.
pub(in crate::http) fn bytes(told: &Told) -> Vec<u8> {
    let content = &told.data["content"];
    match content["text"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => {
            let base64 = content["base64"].as_str().unwrap();
            base64_simd::STANDARD.decode_to_vec(base64).unwrap()
        }
    }
}
