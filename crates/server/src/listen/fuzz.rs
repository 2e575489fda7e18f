//! Bytes of HTTP clients, whatever they are, on one connection to all routes.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Mutex};

use axum::extract::Request;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn};
use lastbyte_testkit::{Corpus, PATIENCE, fuzz_inputs};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::client_of::ClientOf;
use super::connection::{self, Caller, Shared};
use super::socket::{Socket, Stream};
use super::stage::Stage;
use super::traffic::Kind;
use super::{AcceptedTokens, Access, Hosts, Pages, Peer, Token, Traffic};
use crate::doors::page;
use crate::fuzz::{SOON, app};
use crate::{App, router};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A request that came to a route, and the status of its answer.
type Seen = (Method, Uri, StatusCode);

/// A connection comes to its end, and what has come to a route until then are requests as another reader finds
/// them, in their order: none hides in the body of another or behind one that was refused. Each has
/// the token, unless it may do without, a host that is ours and no origin but that host.
#[test]
fn no_head_does_harm() {
    let state = tempfile::tempdir().unwrap();
    let (runtime, app) = app(state.path());
    let token = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(Token::file_in(state.path()));
    std::io::Write::write_all(&mut token.unwrap(), TOKEN.as_bytes()).unwrap();
    let tokens = AcceptedTokens::new(Token::read_or_create(state.path()).unwrap());
    let access = Access::Token(Arc::new(tokens));
    let seen = Arc::<Mutex<Vec<Seen>>>::default();
    let shared = shared(app, Arc::clone(&seen));
    let corpus = Corpus { name: "http", made: made(), words: &WORDS };
    fuzz_inputs(150, corpus, |input| {
        let answers = runtime.block_on(answers(input, Arc::clone(&shared), access.clone()));
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        assert!(answers.is_empty() || answers.starts_with(b"HTTP/1."));
        check(&seen, &requests(input));
        let statuses = seen.iter().map(|(.., status)| status.as_u16());
        (statuses.collect::<Vec<_>>(), answers.get(9..12).map(<[u8]>::to_vec))
    });
}

fn shared(app: App, seen: Arc<Mutex<Vec<Seen>>>) -> Arc<Shared> {
    let note = move |request: Request, next: Next| {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let seen = Arc::clone(&seen);
        async move {
            let answer = next.run(request).await;
            seen.lock().unwrap().push((method, uri, answer.status()));
            answer
        }
    };
    let limits = app.limits;
    let ours = (Arc::new(Traffic::new(&limits)), Arc::new(Pages::in_memory()));
    Arc::new(Shared::new(router(app).layer(from_fn(note)), Hosts::default(), limits, ours))
}

/// What a client reads that sends this and nothing more, until the server ends or it has had enough.
async fn answers(input: &[u8], shared: Arc<Shared>, access: Access) -> Vec<u8> {
    let (mut client, accepted) = UnixStream::pair().unwrap();
    client.write_all(input).await.expect("the kernel has room for it");
    let (slot, _evicted) = shared.traffic.take(Kind::Tcp).unwrap();
    let socket = Socket::new(Stream::Unix(accepted), &shared.limits, Some(Arc::clone(&slot)));
    let peer = Peer::Tcp(([127, 0, 0, 1], 1).into());
    let caller = Caller { peer, access, slot, client_of: ClientOf::default() };
    let (_stage, stages) = watch::channel(Stage::Open);
    let served = connection::serve(socket, caller, shared, stages);
    let talk = async move {
        let mut answers = Vec::new();
        // A stream of events has no end.
        _ = timeout(SOON, client.read_to_end(&mut answers)).await;
        answers
    };
    timeout(PATIENCE, async { tokio::join!(served, talk).1 }).await.expect("the connection ends")
}

/// Requests that were refused have come to no route.
fn check(seen: &[Seen], requests: &[Found<'_>]) {
    let mut left = requests.iter();
    for (method, uri, status) in seen {
        assert_ne!(*status, StatusCode::INTERNAL_SERVER_ERROR, "{method} {uri}");
        let found = left.find(|request| {
            request.begins_with(method.as_str(), uri.path()) && may_be_let_in(request, uri)
        });
        assert!(found.is_some(), "{method} {uri} must not come to a route: {requests:?}");
    }
}

fn may_be_let_in(request: &Found<'_>, uri: &Uri) -> bool {
    let path = uri.path();
    let is_public = matches!(path, "/healthz" | "/v1/links/trade") || page::has(path);
    let bearer = request.fields("authorization");
    let has_token = bearer.len() == 1 && bearer[0].ends_with(TOKEN.as_bytes());
    let in_target = uri.authority().map(|authority| authority.as_str().as_bytes());
    let hosts: Vec<_> = in_target.into_iter().chain(request.fields("host")).collect();
    let is_ours = |host: &&[u8]| {
        let name = name(host);
        name == b"localhost" || name.iter().all(|byte| b"0123456789abcdef.:[]".contains(byte))
    };
    let is_same = |origin: &&[u8]| {
        let scheme = origin.windows(3).position(|bytes| bytes == b"://");
        scheme.is_some_and(|at| {
            hosts.first().is_some_and(|host| name(&origin[at + 3..]) == name(host))
        })
    };
    (is_public || has_token)
        && hosts.iter().all(is_ours)
        && request.fields("origin").iter().all(is_same)
}

/// In small letters and without its port.
fn name(host: &[u8]) -> Vec<u8> {
    let end = host.iter().rposition(|byte| *byte == b':').unwrap_or(host.len());
    let is_port = host[end..].iter().skip(1).all(u8::is_ascii_digit);
    host[..if is_port { end } else { host.len() }].to_ascii_lowercase()
}

/// A request, found without the code under test.
#[derive(Debug)]
struct Found<'a> {
    /// At least one.
    lines: Vec<&'a [u8]>,
}

impl Found<'_> {
    fn begins_with(&self, method: &str, path: &str) -> bool {
        let line = self.lines[0];
        line.starts_with(method.as_bytes())
            && (path.is_empty() || line.windows(path.len()).any(|part| part == path.as_bytes()))
    }

    /// The values of the fields of this name.
    fn fields(&self, name: &str) -> Vec<&[u8]> {
        let mut values = Vec::new();
        for line in &self.lines[1..] {
            let Some(end) = line.iter().position(|byte| *byte == b':') else { continue };
            if line[..end].eq_ignore_ascii_case(name.as_bytes()) {
                values.push(line[end + 1..].trim_ascii());
            }
        }
        values
    }

    /// What is left behind its body; `None` if no other request may follow.
    fn rest<'b>(&self, rest: &'b [u8]) -> Option<&'b [u8]> {
        let has_name = |line: &&[u8]| {
            let name =
                line.split(|byte| *byte == b':').next().filter(|name| name.len() < line.len());
            name.is_some_and(|name| !name.is_empty() && name.iter().all(u8::is_ascii_graphic))
        };
        if !self.lines[1..].iter().all(has_name) {
            return None;
        }
        let (sizes, codings) = (self.fields("content-length"), self.fields("transfer-encoding"));
        match (sizes.as_slice(), codings.as_slice()) {
            ([], []) => Some(rest),
            ([size, others @ ..], []) if others.iter().all(|other| other == size) => {
                rest.get(std::str::from_utf8(size).ok()?.parse().ok()?..)
            }
            ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") => behind_chunks(rest),
            // RFC 9112, 6.1: the server closes the connection.
            _ => None,
        }
    }
}

/// The requests of a connection, up to one behind which none may follow.
fn requests(mut input: &[u8]) -> Vec<Found<'_>> {
    let mut found = Vec::new();
    loop {
        // Empty lines may come before a request.
        while let Some(rest) = input.strip_prefix(b"\n").or(input.strip_prefix(b"\r\n")) {
            input = rest;
        }
        let (mut lines, mut left) = (Vec::new(), input);
        let rest = loop {
            match line(left) {
                Some((b"", rest)) => break rest,
                Some((line, rest)) => {
                    lines.push(line);
                    left = rest;
                }
                None => return found,
            }
        };
        let request = Found { lines };
        let behind = request.rest(rest);
        found.push(request);
        match behind {
            Some(rest) => input = rest,
            None => return found,
        }
    }
}

/// A line without its end, and what follows.
fn line(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = input.iter().position(|byte| *byte == b'\n')?;
    let line = &input[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), &input[end + 1..]))
}

fn behind_chunks(mut input: &[u8]) -> Option<&[u8]> {
    loop {
        let (size, rest) = line(input)?;
        let size = size.split(|byte| *byte == b';').next()?.trim_ascii();
        let size = usize::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()?;
        if size > 0 {
            input = rest.get(size..)?.strip_prefix(b"\r\n")?;
            continue;
        }
        let mut trailers = rest;
        loop {
            match line(trailers)? {
                (b"", rest) => return Some(rest),
                (_, rest) => trailers = rest,
            }
        }
    }
}

const WORDS: [&str; 36] = [
    "\r\n\r\n",
    "\r\n",
    "\n",
    "Host: localhost\r\n",
    "Host: example.com\r\n",
    "Host: [::1]:1\r\n",
    "Origin: http://localhost\r\n",
    "Origin: null\r\n",
    "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding : chunked\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Connection: upgrade\r\nUpgrade: websocket\r\n",
    "Expect: 100-continue\r\n",
    "HTTP/1.0",
    "0\r\n\r\n",
    "5\r\nhello\r\n",
    "ffffffffffffffff\r\n",
    "GET /v1/processes/it HTTP/1.1\r\n",
    "POST /mcp HTTP/1.1\r\n",
    "http://localhost/",
    "http://example.com/",
    "/v1/processes/it/output?",
    "/v1/events?",
    "view=screen&",
    "from=1&max_bytes=3&",
    "wait=true&",
    "%2e%2e/",
    "%2F",
    "%00",
    "%zz",
    "a@localhost",
];

/// A request to each kind of route, alone and behind another.
fn made() -> Vec<Vec<u8>> {
    let request = |line: &str, fields: &str, body: &str| {
        format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n{fields}\r\n{body}"
        )
    };
    let socket = "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n";
    let smuggled = request("GET /metrics", "", "");
    let sized = format!("Content-Length: {}\r\n", smuggled.len());
    let both = format!("{sized}{chunked}");
    [
        request("GET /v1/processes/it/output?from=1&max_bytes=3&view=head_tail", "", ""),
        request("GET /v1/processes/it/output/search?pattern=t.o", "", ""),
        request("GET /v1/processes/it/follow?from=0", "", ""),
        request("GET /v1/processes?phase=running&session=mcp&limit=2", "", ""),
        request("GET /v1/events", "", ""),
        request("GET /v1/processes/it/attach", socket, "\u{1}\u{0}\u{0}\u{0}\u{0}\u{0}"),
        request("POST /v1/processes/it/wait", "Content-Length: 13\r\n", "{\"exit\":true}"),
        request(
            "POST /v1/processes",
            chunked,
            "5\r\n{\"com\r\nf;x=y\r\nmand\":[\"none\"]}\r\n0\r\nA: b\r\n\r\n",
        ),
        request("GET /api/v0/processes/it%20/output?wait=true", "", ""),
        request("POST /mcp", "Content-Type: application/json\r\nContent-Length: 2\r\n", "{}"),
        request("GET /", "Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n", ""),
        request("GET http://127.0.0.1:80/v1", "Expect: 100-continue\r\n", ""),
        request("POST /v1/wait", &sized, &smuggled) + &smuggled,
        request("POST /v1/wait", &both, &format!("0\r\n\r\n{smuggled}")),
        request("POST /v1/wait", chunked, &format!("zz\r\n{smuggled}")),
        format!("GET /healthz HTTP/1.0\r\n\r\n{smuggled}"),
        smuggled.replace("localhost", "example.com") + &smuggled,
    ]
    .map(String::into_bytes)
    .to_vec()
}
