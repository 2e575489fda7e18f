//! The feeds of all nodes as one. Its ids name the place in each, so that a client resumes in all of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, to_bytes};
use axum::http::{HeaderMap, HeaderValue, Request, Uri};
use futures_util::{StreamExt, stream};
use lastbyte_server::doors::http::{event_stream, last_event_id};
use lastbyte_server::listen::Scope;
use lastbyte_wire::{Error, ErrorCode, head};
use percent_encoding::percent_decode_str;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, Interval, interval, timeout_at};

use super::forward::Whole;
use super::{Answer, Gateway};
use crate::connect::check_connected;
use crate::subject::is_node_name;

/// Events that the client has not taken. More of them wait at their nodes.
const QUEUE: usize = 64;
/// How often nodes that are new are looked for, and one that broke is asked again.
const LOOK: Duration = Duration::from_secs(1);
/// A node that has not answered by then is followed once it does.
const GREETING: Duration = Duration::from_secs(3);
/// The place before every event that is kept.
const OLDEST: &str = "0-0";
const IN_QUERY: &str = "last_event_id=";
const GAP: &str = "event: gap\ndata: {}";
const MOST_BYTES: usize = 1 << 20;

/// Where to go on in the feed of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
enum From {
    Now,
    After(String),
    /// At its next event, and a gap is reported: what was before is not known.
    Late,
}

/// One message of a feed: its id, and the lines besides it. Without lines it is only a place.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    place: Option<String>,
    lines: String,
}

type Said = (String, Result<Block, Error>);

impl Gateway {
    pub(super) async fn events(&self, scope: Scope, headers: &HeaderMap, uri: &Uri) -> Answer {
        check_connected(&self.own.client)?;
        self.nodes().check_listed()?;
        let (in_query, query): (Vec<&str>, Vec<&str>) = uri
            .query()
            .into_iter()
            .flat_map(|query| query.split('&'))
            .partition(|pair| pair.starts_with(IN_QUERY));
        let in_query = in_query.first().map(|pair| percent_decode_str(&pair[IN_QUERY.len()..]));
        let in_query = in_query.map(|id| id.decode_utf8_lossy().into_owned());
        let last = last_event_id(headers)?.map(str::to_owned).or(in_query);
        let asked = last.as_deref().map(Asked::parse).transpose()?;
        let mut feeds = Feeds::new(self.clone(), scope, query.join("&"));
        let place = feeds.begin(asked).await?;
        let texts = stream::unfold(feeds, async |mut feeds| Some((feeds.next().await, feeds)));
        Ok(event_stream(place.as_deref(), texts))
    }

    /// The feed of one node.
    async fn feed(
        &self,
        node: &str,
        (scope, query): (&Scope, &str),
        place: Option<&str>,
    ) -> Result<BodyDataStream, Error> {
        let invalid = |_| Error::new(ErrorCode::InvalidRequest, "invalid query or event id");
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = format!("/v1/events?{query}").parse().map_err(|_| invalid(()))?;
        if let Some(place) = place {
            let place = HeaderValue::from_str(place).map_err(|_| invalid(()))?;
            request.headers_mut().insert(head::LAST_EVENT_ID, place);
        }
        let (head, body) = self.forward(node, scope, request).await?.into_parts();
        if head.status.is_success() {
            return Ok(body.into_data_stream());
        }
        let bytes = to_bytes(body, MOST_BYTES).await.unwrap_or_default();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        let refused = Whole { status: head.status, headers: head.headers, body }.into_success();
        Err(refused.err().unwrap_or_else(|| Error::new(ErrorCode::Failed, "no feed")))
    }
}

/// The followed nodes of one client, for as long as it reads.
struct Feeds {
    gateway: Gateway,
    scope: Scope,
    /// What the client asked for, without its place.
    query: String,
    /// The last id of each node.
    places: BTreeMap<String, String>,
    followed: BTreeMap<String, AbortHandle>,
    readers: JoinSet<()>,
    said: (mpsc::Sender<Said>, mpsc::Receiver<Said>),
    /// What came before the greeting was sent.
    early: VecDeque<(String, Block)>,
    look: Interval,
}

impl Feeds {
    fn new(gateway: Gateway, scope: Scope, query: String) -> Self {
        Self {
            gateway,
            scope,
            query,
            places: BTreeMap::new(),
            followed: BTreeMap::new(),
            readers: JoinSet::new(),
            said: mpsc::channel(QUEUE),
            early: VecDeque::new(),
            look: interval(LOOK),
        }
    }

    /// Follows all nodes, and returns the id to resume at once each has said where it is. If all refuse the
    /// request, that is the answer: they check the same.
    async fn begin(&mut self, asked: Option<Asked>) -> Result<Option<String>, Error> {
        for node in self.gateway.nodes().names() {
            let from = match &asked {
                None => From::Now,
                Some(Asked::Oldest) => From::After(OLDEST.into()),
                Some(Asked::Each(places)) => {
                    places.get(&node).map_or(From::Late, |place| From::After(place.clone()))
                }
            };
            self.follow(node, from);
        }
        let until = Instant::now() + GREETING;
        let mut waiting: BTreeSet<String> = self.followed.keys().cloned().collect();
        let (mut is_followed, mut refused) = (false, None);
        while !waiting.is_empty() {
            let Ok(Some((node, said))) = timeout_at(until, self.said.1.recv()).await else { break };
            waiting.remove(&node);
            match said {
                Ok(block) => {
                    is_followed = true;
                    self.early.push_back((node, block));
                }
                Err(error) if error.code == ErrorCode::NodeSilent => {}
                Err(error) => refused = Some(error),
            }
        }
        if let (Some(error), false) = (refused, is_followed) {
            return Err(error);
        }
        // What came before any event is where the client is now.
        while self.early.front().is_some_and(|(_, block)| block.lines.is_empty()) {
            let (node, block) = self.early.pop_front().expect("there is a first one");
            self.places.extend(block.place.map(|place| (node, place)));
        }
        Ok((!self.places.is_empty()).then(|| id(&self.places)))
    }

    fn follow(&mut self, node: String, from: From) {
        if let From::After(place) = &from {
            self.places.insert(node.clone(), place.clone());
        }
        let reader = Reader {
            gateway: self.gateway.clone(),
            scope: self.scope.clone(),
            query: self.query.clone(),
            node: node.clone(),
            said: self.said.0.clone(),
        };
        self.followed.insert(node, self.readers.spawn(reader.read(from)));
    }

    /// Follows nodes that have joined, and no longer those that were forgotten.
    fn look(&mut self) {
        let names: BTreeSet<String> = self.gateway.nodes().names().into_iter().collect();
        self.followed.retain(|node, reader| {
            let is_known = names.contains(node);
            if !is_known {
                reader.abort();
                self.places.remove(node);
            }
            is_known
        });
        for node in names {
            if !self.followed.contains_key(&node) {
                self.follow(node, From::Late);
            }
        }
        while self.readers.try_join_next().is_some() {}
    }

    /// The next event, as it is sent.
    async fn next(&mut self) -> String {
        loop {
            if let Some((node, block)) = self.early.pop_front() {
                if let Some(text) = self.written(node, block) {
                    return text;
                }
                continue;
            }
            tokio::select! {
                said = self.said.1.recv() => match said {
                    Some((node, Ok(block))) => self.early.push_back((node, block)),
                    // Its reader asks again.
                    Some((_, Err(_))) | None => {}
                },
                _ = self.look.tick() => self.look(),
            }
        }
    }

    fn written(&mut self, node: String, Block { place, lines }: Block) -> Option<String> {
        let has_place = place.is_some();
        self.places.extend(place.map(|place| (node, place)));
        let id = if has_place { format!("id: {}\n", id(&self.places)) } else { String::new() };
        (!lines.is_empty()).then(|| format!("{id}{lines}\n\n"))
    }
}

/// Reads the feed of one node, again and again.
struct Reader {
    gateway: Gateway,
    scope: Scope,
    query: String,
    node: String,
    said: mpsc::Sender<Said>,
}

impl Reader {
    async fn read(self, mut from: From) {
        let mut pauses = interval(LOOK);
        loop {
            pauses.tick().await;
            let place = if let From::After(place) = &from { Some(place.as_str()) } else { None };
            let asked = (&self.scope, self.query.as_str());
            let mut body = match self.gateway.feed(&self.node, asked, place).await {
                Ok(body) => body,
                Err(error) => {
                    // Nothing is known of what it does meanwhile.
                    if from == From::Now {
                        from = From::Late;
                    }
                    if self.said.send((self.node.clone(), Err(error))).await.is_err() {
                        return;
                    }
                    continue;
                }
            };
            if from == From::Late && self.say(Block::gap()).await.is_none() {
                return;
            }
            let mut text = Vec::new();
            while let Some(Ok(bytes)) = body.next().await {
                text.extend_from_slice(&bytes);
                while let Some(block) = next_block(&mut text) {
                    if let Some(place) = &block.place {
                        from = From::After(place.clone());
                    }
                    if self.say(block).await.is_none() {
                        return;
                    }
                }
                if text.len() > MOST_BYTES {
                    tracing::warn!(node = self.node, "an event is too large");
                    break;
                }
            }
            if from == From::Now {
                from = From::Late;
            }
        }
    }

    /// `None` if nobody listens.
    async fn say(&self, block: Block) -> Option<()> {
        let is_comment = block.place.is_none() && block.lines.is_empty();
        if is_comment {
            return Some(());
        }
        self.said.send((self.node.clone(), Ok(block))).await.ok()
    }
}

impl Block {
    fn gap() -> Self {
        Self { place: None, lines: GAP.into() }
    }
}

/// Takes the first message, if it is whole. Comments are left out: they keep another connection alive.
fn next_block(text: &mut Vec<u8>) -> Option<Block> {
    let end = text.windows(2).position(|two| two == b"\n\n")?;
    let block: Vec<u8> = text.drain(..end + 2).collect();
    let block = String::from_utf8_lossy(&block[..end]);
    let (mut place, mut lines) = (None, Vec::new());
    for line in block.lines() {
        match line.strip_prefix("id: ") {
            Some(id) => place = Some(id.to_owned()),
            None if line.starts_with(':') => {}
            None => lines.push(line),
        }
    }
    Some(Block { place, lines: lines.join("\n") })
}

/// Where a client goes on.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// With the oldest event that each node keeps.
    Oldest,
    Each(BTreeMap<String, String>),
}

impl Asked {
    fn parse(id: &str) -> Result<Self, Error> {
        if id == OLDEST {
            return Ok(Self::Oldest);
        }
        let each = id.split(',').map(|pair| {
            let (node, place) = pair.split_once('=')?;
            (is_node_name(node) && !place.is_empty()).then(|| (node.to_owned(), place.to_owned()))
        });
        let places: Option<BTreeMap<_, _>> = each.collect();
        let message = "invalid event id: expected one that a gateway has sent";
        places.map(Self::Each).ok_or_else(|| Error::new(ErrorCode::InvalidRequest, message))
    }
}

fn id(places: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = places.iter().map(|(node, place)| format!("{node}={place}")).collect();
    pairs.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_the_place_in_each_feed() {
        let places = [("a", "7-1"), ("b-x", "3-20")];
        let places = places.map(|(node, place)| (node.to_owned(), place.to_owned())).into();
        assert_eq!(id(&places), "a=7-1,b-x=3-20");
        assert_eq!(Asked::parse(&id(&places)).unwrap(), Asked::Each(places));
        assert_eq!(Asked::parse("0-0").unwrap(), Asked::Oldest);
        for wrong in ["", "7-1", "a=", "=7-1", "a=7-1,", "a b=1"] {
            assert_eq!(Asked::parse(wrong).unwrap_err().code, ErrorCode::InvalidRequest, "{wrong}");
        }
    }

    #[test]
    fn a_feed_is_read_in_whatever_pieces_it_comes() {
        let feed = "id: 1-4\n\n:\n\nid: 1-5\nevent: started\ndata: {}\n\nevent: gap\ndata: {}\n\n";
        let block = |place: Option<&str>, lines: &str| Block {
            place: place.map(str::to_owned),
            lines: lines.to_owned(),
        };
        let want = [
            block(Some("1-4"), ""),
            block(None, ""),
            block(Some("1-5"), "event: started\ndata: {}"),
            block(None, GAP),
        ];
        for size in 1..feed.len() {
            let (mut text, mut found) = (Vec::new(), Vec::new());
            for piece in feed.as_bytes().chunks(size) {
                text.extend_from_slice(piece);
                found.extend(std::iter::from_fn(|| next_block(&mut text)));
            }
            assert_eq!(found, want, "in pieces of {size}");
        }
    }
}
