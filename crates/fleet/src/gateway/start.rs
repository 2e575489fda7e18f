//! Starting a command on one of the nodes, once.

use std::time::Duration;

use async_nats::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use futures_util::future::join_all;
use lastbyte_server::listen::{Needs, Scope};
use lastbyte_wire::{Error, ErrorCode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::claims::{ClaimOf, fingerprint};
use super::forward::Whole;
use super::list::name_processes;
use super::{Answer, Gateway};
use crate::claim::{
    Action, Answer as Outcome, Claim, Event, KeyOnNode, KeyedStart, NodeAnswer, NotPlaced,
    OnSilence, Wanted,
};
use crate::node::{CLAIM_HEADER, ClaimedKey, FENCE_HEADER, FenceWord, KEY_PATH};
use crate::placement::{Bid, Place, nodes_to_ask, rank};
use crate::subject;

/// So many nodes are asked what they would take.
const ASKED: usize = 3;
/// How long a bid is waited for; and once more if none came, on machines that are busy.
const BID_WITHIN: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(500)];
/// After so many steps the answer is *unknown*.
const PATIENCE: u32 = 40;
/// Before a node that cannot decide yet is asked again.
const BEFORE_NEXT_TRY: Duration = Duration::from_millis(250);

/// A start of one caller.
struct Starting {
    gateway: Gateway,
    scope: Scope,
    place: Place,
    /// What the node is sent.
    launch: Value,
    key: String,
    claim: ClaimOf,
    auction: Auction,
}

/// Whether nodes were asked what they would take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Auction {
    NotYet,
    /// The only node there is was taken at its last beat's word.
    LeftOut,
    Held,
}

impl Gateway {
    pub(super) async fn start(&self, scope: &Scope, mut launch: Value) -> Answer {
        // Before the claim is written, which would keep clients that may start it from doing so.
        scope.check(Needs::Change)?;
        crate::connect::check_connected(&self.own.client)?;
        let place = take_place(&mut launch)?;
        if let Place::Node(node) = &place {
            self.nodes().check_known(node)?;
        }
        let on_silence = take_replace(&mut launch)?;
        let given = match launch.get("key") {
            None | Some(Value::Null) => None,
            Some(Value::String(key)) => Some(key.clone()),
            Some(_) => return Err(invalid("`key`: expected a string")),
        };
        let (key, claim, fingerprint) = match given {
            Some(key) => {
                // Keys of a session are its own.
                let within = scope.within().map_or("", |session| &session.0);
                let (claim, fingerprint) = self
                    .own
                    .claims
                    .of(&format!("{}:{within}:{key}", within.len()), &launch)
                    .await
                    .map_err(unclaimed)?;
                (key, claim, fingerprint)
            }
            None => {
                let key = format!("gateway-{}", Uuid::new_v4().simple());
                launch["key"] = json!(key);
                let fingerprint = fingerprint(&[], &launch);
                (key, ClaimOf::Own(None), fingerprint)
            }
        };
        let wanted = Wanted { fingerprint, on_silence, patience: PATIENCE };
        let (gateway, scope) = (self.clone(), scope.clone());
        let auction = Auction::NotYet;
        let starting = Starting { gateway, scope, place, launch, key, claim, auction };
        let unfinished = Unfinished::new(&starting, &wanted);
        let answer = starting.carry_out(wanted).await;
        unfinished.answered();
        answer
    }
}

/// A keyed start whose caller may go away before it is known what became of it: then it is finished
/// for nobody, as on one node. Otherwise its claim would stand in the way of another launch.
struct Unfinished(Option<(Starting, Wanted)>);

impl Unfinished {
    fn new(starting: &Starting, wanted: &Wanted) -> Self {
        // A claim that nobody else knows stands in nobody's way.
        let ClaimOf::Bucket { store, key } = &starting.claim else { return Self(None) };
        let mut launch = starting.launch.clone();
        if let Some(members) = launch.as_object_mut() {
            // Nobody waits for it.
            for member in ["wait", "view", "max_bytes"] {
                members.remove(member);
            }
        }
        let again = Starting {
            gateway: starting.gateway.clone(),
            scope: starting.scope.clone(),
            place: starting.place.clone(),
            launch,
            key: starting.key.clone(),
            claim: ClaimOf::Bucket { store: store.clone(), key: key.clone() },
            auction: Auction::NotYet,
        };
        Self(Some((again, wanted.clone())))
    }

    fn answered(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some((starting, wanted)) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move {
                // Nobody hears the answer.
                _ = starting.carry_out(wanted).await;
            });
        }
    }
}

impl Starting {
    async fn carry_out(mut self, wanted: Wanted) -> Answer {
        let (mut start, mut action) = KeyedStart::new(wanted);
        loop {
            let event = match action {
                Action::AskForBids => Event::Bids(self.bids().await),
                Action::Create(claim) => self.claim.create(&claim).await,
                Action::Move { claim, from } => self.claim.change(&claim, from).await,
                Action::Read => self.claim.read().await,
                Action::Start(claim) => match self.start_on(&claim).await {
                    Event::Silent(_) if self.has_left(&claim.node).await => {
                        action = start.give_up();
                        continue;
                    }
                    event => event,
                },
                Action::Ask(claim) => self.ask_about(&claim).await,
                Action::Answer(outcome) => return self.answer(outcome),
            };
            action = start.on(event);
        }
    }

    /// Of a few nodes that could take it, the best first.
    async fn bids(&mut self) -> Vec<Bid> {
        let present = self.gateway.nodes().present();
        let random = Uuid::new_v4().as_u64_pair().0;
        let names = nodes_to_ask(&present, &self.place, ASKED, random);
        let is_first = std::mem::replace(&mut self.auction, Auction::Held) == Auction::NotYet;
        // Where there is no choice, an auction only costs time. A claim in the bucket is not written for a
        // node that may be gone: it would stand in the way of the next attempt.
        if let ([only], ClaimOf::Own(None), true) = (&names[..], &self.claim, is_first) {
            let known = present.iter().filter(|bid| bid.node == *only).cloned();
            let ranked = rank(known, &self.place, random);
            if !ranked.is_empty() {
                self.auction = Auction::LeftOut;
                return ranked;
            }
        }
        for within in BID_WITHIN {
            let bids = join_all(names.iter().map(|node| self.bid(node, within))).await;
            let ranked = rank(bids.into_iter().flatten(), &self.place, random);
            if !ranked.is_empty() {
                return ranked;
            }
        }
        Vec::new()
    }

    /// Whether a node that was not asked for a bid, and has not answered the start, gives none now either.
    async fn has_left(&self, node: &str) -> bool {
        self.auction == Auction::LeftOut && self.bid(node, BID_WITHIN[1]).await.is_none()
    }

    async fn bid(&self, node: &str, within: Duration) -> Option<Bid> {
        let request = Request::new().timeout(Some(within));
        let answer =
            self.gateway.own.client.send_request(subject::bid(node), request).await.ok()?;
        serde_json::from_slice(&answer.payload).ok()
    }

    async fn start_on(&self, claim: &Claim) -> Event<Whole> {
        let headers = self.claim_in_head(claim);
        let path = (Method::POST, "/v1/processes");
        let (gateway, scope) = (&self.gateway, &self.scope);
        match gateway.ask_with(&claim.node, scope, path, (Some(&self.launch), headers)).await {
            Ok(answer) => self.event_of(claim, answer).await,
            Err(_) => {
                pause().await;
                Event::Silent(gateway.nodes().lease(&claim.node, claim.epoch))
            }
        }
    }

    async fn event_of(&self, claim: &Claim, answer: Whole) -> Event<Whole> {
        let word = answer.headers.get(FENCE_HEADER).and_then(|word| word.to_str().ok());
        let code = code(&answer);
        Event::Node(match word.and_then(FenceWord::parse) {
            Some(FenceWord::Fenced(epoch)) => {
                if epoch <= claim.epoch {
                    pause().await;
                }
                NodeAnswer::Fenced(epoch)
            }
            Some(FenceWord::NotYet) => {
                pause().await;
                NodeAnswer::NotYet
            }
            Some(FenceWord::Refused) if is_of_the_node(code) => NodeAnswer::Refused(answer),
            Some(FenceWord::Refused) => NodeAnswer::Failed(answer),
            None if answer.status.is_success() => NodeAnswer::Started(answer),
            None if code == Some("key_conflict") => NodeAnswer::Conflict(answer),
            // The same would be answered anywhere, before anything is started.
            None if answer.status.is_client_error() => NodeAnswer::Failed(answer),
            // Too many connections, say: nothing is known of other copies of the request.
            None => {
                pause().await;
                NodeAnswer::NotYet
            }
        })
    }

    /// Whether the node of another launch's claim has the key.
    async fn ask_about(&self, claim: &Claim) -> Event<Whole> {
        let (gateway, headers) = (&self.gateway, self.claim_in_head(claim));
        let path = (Method::GET, KEY_PATH);
        let Ok(answer) = gateway.ask_with(&claim.node, &self.scope, path, (None, headers)).await
        else {
            return Event::Silent(gateway.nodes().lease(&claim.node, claim.epoch));
        };
        Event::Key(match answer.body.as_str() {
            Some("started") => KeyOnNode::Started,
            Some("never") => KeyOnNode::Never,
            Some(_) | None => KeyOnNode::NotYet,
        })
    }

    fn claim_in_head(&self, claim: &Claim) -> HeaderMap {
        let asked = ClaimedKey { key: self.key.clone(), claim: claim.clone() };
        HeaderMap::from_iter([(HeaderName::from_static(CLAIM_HEADER), claim_header(&asked))])
    }

    fn answer(&self, outcome: Outcome<Whole>) -> Answer {
        match outcome {
            Outcome::Started { claim, body } => {
                let Whole { status, mut body, .. } = body;
                name_processes(&claim.node, &mut body);
                Ok(super::json(status, &body))
            }
            // As if its bid had said so.
            Outcome::NotPlaced(NotPlaced::Refused(answer))
                if code(&answer) == Some(ErrorCode::NodeDraining.as_str()) =>
            {
                Err(self.no_node())
            }
            Outcome::Conflict(Some(answer))
            | Outcome::Failed { body: answer, .. }
            | Outcome::NotPlaced(NotPlaced::Refused(answer)) => {
                Err(answer.into_success().err().unwrap_or_else(|| unknown(None)))
            }
            Outcome::Conflict(None) => Err(Error::new(
                ErrorCode::KeyConflict,
                format!("the key {:?} was used for another launch in this fleet", self.key),
            )
            .hint("use another key, or send the same launch")),
            Outcome::Unknown(claim) => Err(unknown(claim.as_ref())),
            Outcome::NotPlaced(NotPlaced::NoBids) => Err(self.no_node()),
        }
    }

    fn no_node(&self) -> Error {
        let place = match &self.place {
            Place::Node(node) => format!("the node {node} takes no command"),
            Place::Labels(labels) if labels.is_empty() => "no node takes a command".into(),
            Place::Labels(labels) => {
                let labels: Vec<String> =
                    labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("no node with {} takes a command", labels.join(" and "))
            }
        };
        Error::new(ErrorCode::NoNode, place)
            .hint("GET /v1/nodes tells which nodes are present, draining or full")
    }
}

fn code(answer: &Whole) -> Option<&str> {
    answer.body["error"]["code"].as_str()
}

fn claim_header(asked: &ClaimedKey) -> HeaderValue {
    let json = serde_json::to_string(asked).expect("strings and numbers are JSON");
    let printable: String = json.chars().map(escaped).collect();
    HeaderValue::try_from(printable).expect("printable ASCII is valid in a head")
}

/// What a head cannot have occurs only in JSON's strings, which can escape it.
fn escaped(character: char) -> String {
    if matches!(character, ' '..='~') {
        return character.into();
    }
    character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorCode::InvalidRequest, format!("invalid {what}"))
}

fn take_replace(launch: &mut Value) -> Result<OnSilence, Error> {
    match launch.as_object_mut().and_then(|launch| launch.remove("replace")) {
        Some(Value::Bool(true)) => Ok(OnSilence::Replace),
        None | Some(Value::Null | Value::Bool(false)) => Ok(OnSilence::AnswerUnknown),
        Some(_) => Err(invalid("`replace`: expected true or false")),
    }
}

/// Says the place to nobody but this gateway.
fn take_place(launch: &mut Value) -> Result<Place, Error> {
    let on = launch.as_object_mut().and_then(|launch| launch.remove("on"));
    let Some(on) = on.filter(|on| !on.is_null()) else { return Ok(Place::anywhere()) };
    let invalid = |error| Error::new(ErrorCode::InvalidRequest, format!("invalid `on`: {error}"));
    let on: lastbyte_wire::Place = serde_json::from_value(on).map_err(invalid)?;
    match (on.node, on.labels) {
        (Some(node), labels) if labels.is_empty() => Ok(Place::Node(node)),
        (None, labels) => Ok(Place::Labels(labels)),
        (Some(_), _) => {
            let message = "invalid `on`: give either `node` or `labels`";
            Err(Error::new(ErrorCode::InvalidRequest, message))
        }
    }
}

/// Whether another node may take what this one refuses.
fn is_of_the_node(code: Option<&str>) -> bool {
    let of_node = [
        ErrorCode::NodeDraining,
        ErrorCode::CapReached,
        ErrorCode::SandboxUnavailable,
        ErrorCode::LimitUnavailable,
        ErrorCode::LimitAboveCap,
        ErrorCode::ShuttingDown,
        ErrorCode::OutOfMemory,
        ErrorCode::Failed,
    ];
    of_node.iter().any(|known| Some(known.as_str()) == code)
}

fn unclaimed(error: async_nats::Error) -> Error {
    let message = format!("cannot claim the key in the fleet: {error}");
    Error::new(ErrorCode::FleetUnreachable, message).hint("nothing was started; try again")
}

fn unknown(claim: Option<&Claim>) -> Error {
    let message = match claim {
        Some(claim) => {
            format!("the node {} may have started the command and does not answer", claim.node)
        }
        None => "whether the command was started is unknown".into(),
    };
    Error::new(ErrorCode::NodeSilent, message).hint(
        "repeat the start with the same key to learn more; with `replace` it is started on another \
         node once this one is gone, and may then run twice",
    )
}

async fn pause() {
    sleep_until(Instant::now() + BEFORE_NEXT_TRY).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Epoch, Fingerprint};

    #[test]
    fn a_claim_reaches_the_node_whatever_its_key_is() {
        let claim = Claim {
            node: "a".into(),
            epoch: Epoch(7),
            fingerprint: Fingerprint("f".into()),
            attempt: 1,
            replaced: 0,
        };
        for key in ["k", "a\u{7f}b", "\n\0\u{1b}", "ключ", "😀 \"quoted\" \\"] {
            let header = claim_header(&ClaimedKey { key: key.into(), claim: claim.clone() });
            let read: ClaimedKey = serde_json::from_slice(header.as_bytes()).unwrap();
            assert_eq!((read.key.as_str(), &read.claim), (key, &claim));
        }
    }
}
