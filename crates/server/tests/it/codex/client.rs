//! A client that keeps all messages in order, and never waits when it sends.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use base64_simd::STANDARD;
use futures_util::{SinkExt, StreamExt};
use lastbyte_server::doors::codex::{Door, serve_lines};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

use super::fixture::patiently;

pub struct Client {
    /// `None` when the client has closed its end.
    to: Option<Sender<Vec<u8>>>,
    from: mpsc::UnboundedReceiver<Value>,
    /// All messages, in order.
    pub got: Vec<Value>,
    /// The index of each answer in it.
    answers: HashMap<i64, usize>,
    next_id: i64,
    reading: watch::Sender<bool>,
    /// The server's side, if the test runs it.
    pub served: Option<JoinHandle<()>>,
}

impl Client {
    /// Served over a pair of pipes.
    pub fn over_lines(door: &Door) -> Self {
        let door = door.clone();
        Self::over_pipes(|from, to| async move { serve_lines(&door, from, to).await })
    }

    /// Served by this over a pair of pipes.
    pub fn over_pipes<S, F>(serve: S) -> Self
    where
        S: FnOnce(PipeReader, PipeWriter) -> F,
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let (their_input, mut to) = std::io::pipe().unwrap();
        let (from, their_output) = std::io::pipe().unwrap();
        let served = serve(their_input, their_output);
        let served = tokio::spawn(async move { served.await.unwrap() });
        let (sender, lines) = channel::<Vec<u8>>();
        thread::spawn(move || {
            for line in lines {
                // The server may be gone, which the test notices elsewhere.
                _ = to.write_all(&line);
            }
        });
        let (messages, received) = mpsc::unbounded_channel();
        let (reading, mut may_read) = watch::channel(true);
        let runtime = tokio::runtime::Handle::current();
        thread::spawn(move || {
            let mut lines = BufReader::with_capacity(4096, from).split(b'\n');
            while runtime.block_on(may_read.wait_for(|may| *may)).is_ok()
                && let Some(Ok(line)) = lines.next()
            {
                // The test may have ended.
                _ = messages.send(serde_json::from_slice(&line).expect("a line is a message"));
            }
        });
        Self::new(sender, received, reading, Some(served))
    }

    /// Served over a WebSocket.
    pub async fn over_websocket(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Self {
        Self::over_websocket_at("/any/path", stream).await
    }

    /// Served over a WebSocket at this path.
    pub async fn over_websocket_at(
        path: &str,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Self {
        let url = format!("ws://localhost{path}");
        let socket = tokio_tungstenite::client_async(url, stream).await;
        let (mut sink, mut stream) = socket.unwrap().0.split();
        let (sender, lines) = channel::<Vec<u8>>();
        let (queue, mut queued) = mpsc::unbounded_channel();
        thread::spawn(move || lines.into_iter().try_for_each(|line| queue.send(line)));
        tokio::spawn(async move {
            while let Some(line) = queued.recv().await {
                let message = match String::from_utf8(line) {
                    Ok(text) => Message::text(text),
                    Err(bytes) => Message::binary(bytes.into_bytes()),
                };
                sink.send(message).await.unwrap();
            }
            // The server may be gone.
            _ = sink.close().await;
        });
        let (messages, received) = mpsc::unbounded_channel();
        let (reading, mut may_read) = watch::channel(true);
        tokio::spawn(async move {
            while may_read.wait_for(|may| *may).await.is_ok()
                && let Some(Ok(message)) = stream.next().await
            {
                if let Message::Text(text) = message {
                    // The test may have ended.
                    _ = messages.send(serde_json::from_str(&text).expect("a frame is a message"));
                }
            }
        });
        Self::new(sender, received, reading, None)
    }

    fn new(
        to: Sender<Vec<u8>>,
        from: mpsc::UnboundedReceiver<Value>,
        reading: watch::Sender<bool>,
        served: Option<JoinHandle<()>>,
    ) -> Self {
        Self {
            to: Some(to),
            from,
            got: Vec::new(),
            answers: HashMap::new(),
            next_id: 0,
            reading,
            served,
        }
    }

    pub async fn initialize(&mut self, capabilities: Value) -> Value {
        let client = json!({"name": "test", "version": "0"});
        let params = json!({"clientInfo": client, "capabilities": capabilities});
        let answer = self.call("initialize", params).await;
        self.send(&json!({"method": "initialized"}));
        answer
    }

    /// Sends a request and does not wait; returns its id.
    pub fn request(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        self.send(&json!({"id": self.next_id, "method": method, "params": params}));
        self.next_id
    }

    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id).await
    }

    pub async fn exec(&mut self, params: Value) -> Value {
        self.call("command/exec", params).await
    }

    pub fn send(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes());
    }

    pub fn send_line(&mut self, line: &[u8]) {
        let to = self.to.as_ref().expect("the client has not closed its end");
        to.send([line, b"\n"].concat()).unwrap();
    }

    /// Waits for the answer to a request.
    pub async fn answer(&mut self, id: i64) -> Value {
        patiently("an answer", async {
            while !self.answers.contains_key(&id) {
                self.take().await.unwrap_or_else(|| panic!("closed before the answer to {id}"));
            }
        })
        .await;
        self.got[self.answers[&id]].clone()
    }

    /// Receives the next message; `None` at the end of the connection.
    async fn take(&mut self) -> Option<()> {
        let message = self.from.recv().await?;
        if let (Some(id), None) = (message["id"].as_i64(), message.get("method")) {
            self.answers.entry(id).or_insert(self.got.len());
        }
        self.got.push(message);
        Some(())
    }

    /// Waits until `find` returns something for the messages so far.
    pub async fn until<T>(
        &mut self,
        what: &str,
        mut found: impl FnMut(&[Value]) -> Option<T>,
    ) -> T {
        patiently(what, async {
            loop {
                if let Some(found) = found(&self.got) {
                    return found;
                }
                self.take().await.unwrap_or_else(|| panic!("closed before {what}"));
            }
        })
        .await
    }

    /// Receives messages until the server closes its end.
    pub async fn until_closed(&mut self) {
        patiently("the end of the connection", async { while self.take().await.is_some() {} })
            .await;
    }

    /// Waits until the bytes of a stream are these.
    pub async fn until_output(&mut self, id: &str, stream: &str, want: &[u8]) {
        let what = format!("{id}'s output is {:?}", String::from_utf8_lossy(want));
        self.until(&what, |got| (bytes_of(got, id, stream) == want).then_some(())).await;
    }

    /// The output that a command has streamed so far.
    pub fn output(&self, id: &str, stream: &str) -> Vec<u8> {
        bytes_of(&self.got, id, stream)
    }

    /// Stops or continues reading.
    pub fn read_on(&self, reading: bool) {
        self.reading.send_replace(reading);
    }

    /// Closes the client's end; it can still read.
    pub fn close(&mut self) {
        self.to = None;
    }
}

fn bytes_of(got: &[Value], id: &str, stream: &str) -> Vec<u8> {
    let deltas = got.iter().filter(|message| is_delta(message, id, stream));
    let bytes = deltas.flat_map(|delta| {
        let text = delta["params"]["deltaBase64"].as_str().unwrap();
        STANDARD.decode_to_vec(text).unwrap()
    });
    bytes.collect()
}

pub fn is_delta(message: &Value, id: &str, stream: &str) -> bool {
    let params = &message["params"];
    let is_delta = matches!(
        message["method"].as_str(),
        Some("command/exec/outputDelta" | "process/outputDelta")
    );
    let whose = params.get("processId").or_else(|| params.get("processHandle"));
    is_delta && whose.is_some_and(|whose| whose == id) && params["stream"] == stream
}

pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode_to_string(bytes)
}
