//! Starts that the fleet has claimed for this node, and the request to drain.

use std::array;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, Response, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::IntoResponse;
use lastbyte_engine::Key;
use lastbyte_server::listen::{Grant, Needs, Scope, refusal};
use lastbyte_server::verbs::start::{self, Claimed};
use lastbyte_wire::{DrainRequest, Error, ErrorCode};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{LEASE, Own};
use crate::claim::{Claim, KeyOnNode};
use crate::fence::{Fence, Verdict};
use crate::ids::Epoch;

/// In a request: the claim and the key that it is for, as JSON.
pub(crate) const CLAIM_HEADER: &str = "lastbyte-claim";
/// In an answer: what the fence has said.
pub(crate) const FENCE_HEADER: &str = "lastbyte-fence";

/// A claim on its way to its node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ClaimedKey {
    pub(crate) key: String,
    pub(crate) claim: Claim,
}

/// What a node decided about an attempt whose key has no process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FenceWord {
    /// It will never start it.
    Refused,
    /// Its epoch is this one.
    Fenced(Epoch),
    NotYet,
}

impl FenceWord {
    fn to_header(self) -> String {
        match self {
            Self::Refused => "refused".into(),
            Self::Fenced(Epoch(epoch)) => format!("fenced {epoch}"),
            Self::NotYet => "not-yet".into(),
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "refused" => Some(Self::Refused),
            "not-yet" => Some(Self::NotYet),
            text => Some(Self::Fenced(Epoch(text.strip_prefix("fenced ")?.parse().ok()?))),
        }
    }
}

/// The fence, and turns so that one start of a key is decided at a time.
#[derive(Debug)]
pub(super) struct Fenced {
    fence: Mutex<Fence>,
    /// One for all keys with the same hash.
    turns: [tokio::sync::Mutex<()>; TURNS],
}

const TURNS: usize = 64;
const MOST_REFUSALS: usize = 100_000;

impl Default for Fenced {
    fn default() -> Self {
        let fence = Mutex::new(Fence::new(LEASE, MOST_REFUSALS));
        Self { fence, turns: array::from_fn(|_| tokio::sync::Mutex::default()) }
    }
}

impl Fenced {
    fn fence(&self) -> MutexGuard<'_, Fence> {
        self.fence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, key: &str) -> &tokio::sync::Mutex<()> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        &self.turns[hasher.finish() as usize % TURNS]
    }

    pub(super) fn epoch(&self, now: Instant) -> Option<Epoch> {
        self.fence().epoch(now)
    }

    pub(super) fn joined(&self, epoch: Epoch, sent: Instant) {
        self.fence().joined(epoch, sent);
    }

    pub(super) fn renewed(&self, sent: Instant, now: Instant) {
        self.fence().renewed(sent, now);
    }
}

/// The claim of one request.
#[derive(Debug)]
struct Attempt {
    own: Arc<Own>,
    key: FenceKey,
    claim: Claim,
    word: OnceLock<FenceWord>,
}

/// A key as the engine has it, and as the fence has it.
#[derive(Debug)]
struct FenceKey {
    engine: Key,
    /// A hash: the fence remembers many, and clients choose how long they are.
    fence: String,
}

impl FenceKey {
    /// Keys of a session are its own.
    fn new(scope: &Scope, key: String) -> Self {
        let engine = scope.key(&Key(key));
        let hash = Sha256::digest(&engine.0);
        let fence = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self { engine, fence }
    }
}

impl Attempt {
    fn verdict(&self) -> Verdict {
        let verdict = self.own.fence.fence().check(&self.key.fence, &self.claim, Instant::now());
        match verdict {
            Verdict::Start if self.own.draining.load(Relaxed) || self.own.free_slots() == 0 => {
                self.refuse();
                Verdict::Refused
            }
            verdict => verdict,
        }
    }

    fn refuse(&self) {
        self.own.fence.fence().refuse(&self.key.fence, &self.claim);
    }

    /// The request was refused before its claim was looked at: the same would be answered again. So
    /// that its key can be used for another launch, this one is never started.
    async fn refuse_invalid(&self) {
        let _turn = start::Claim::turn(self).lock().await;
        if self.word.get().is_none() && self.own.engine.keyed(&self.key.engine).is_none() {
            self.refuse();
            self.say(FenceWord::Refused);
        }
    }

    fn say(&self, word: FenceWord) {
        // The first word is the one about this request.
        _ = self.word.set(word);
    }
}

impl start::Claim for Attempt {
    fn turn(&self) -> &tokio::sync::Mutex<()> {
        self.own.fence.turn(&self.key.fence)
    }

    fn check(&self) -> Result<(), Error> {
        let name = &self.own.settings.name;
        let fenced = |message: String| Err(Error::new(ErrorCode::NodeFenced, message));
        match self.verdict() {
            Verdict::Start => Ok(()),
            Verdict::Refused => {
                self.say(FenceWord::Refused);
                let message = format!("the node {name} takes no more commands");
                Err(Error::new(ErrorCode::NodeDraining, message))
            }
            Verdict::Fenced(epoch) => {
                self.say(FenceWord::Fenced(epoch));
                fenced(format!("the node {name} has joined the fleet again since this was claimed"))
            }
            Verdict::NotYet => {
                self.say(FenceWord::NotYet);
                fenced(format!("the node {name} has no place in the fleet at the moment"))
            }
        }
    }

    fn refused(&self) {
        self.refuse();
        self.say(FenceWord::Refused);
    }
}

/// In front of the routes of the server.
pub(super) fn guard(own: Arc<Own>, router: Router) -> Router {
    router.layer(from_fn_with_state(own, guarded))
}

async fn guarded(State(own): State<Arc<Own>>, mut request: Request, next: Next) -> Response<Body> {
    if request.uri().path() == KEY_PATH {
        return match asked_about(&request) {
            Ok((grant, asked)) => tell_of_key(&own, &grant, &asked).await,
            Err(error) => refusal(error),
        };
    }
    if is_drain(&request, &own.settings.name) {
        return drain(&own, request).await.unwrap_or_else(refusal);
    }
    let asked = match claimed_key(&request) {
        Ok(asked) => asked,
        Err(error) => return refusal(error),
    };
    // A client that may not start it must not prevent it either.
    let (Some(scope), Some(ClaimedKey { key, claim })) = (scope_of_start(&request), asked) else {
        return next.run(request).await;
    };
    let key = FenceKey::new(&scope, key);
    let attempt = Arc::new(Attempt { own, key, claim, word: OnceLock::new() });
    request.extensions_mut().insert(Claimed(Arc::clone(&attempt) as _));
    let mut response = next.run(request).await;
    if response.status().is_client_error() {
        attempt.refuse_invalid().await;
    }
    if let Some(word) = attempt.word.get()
        && let Ok(word) = HeaderValue::try_from(word.to_header())
    {
        response.headers_mut().insert(FENCE_HEADER, word);
    }
    response
}

/// The scope of a start, by a client that may make it.
fn scope_of_start(request: &Request) -> Option<Scope> {
    let is_start = request.method() == Method::POST && request.uri().path() == "/v1/processes";
    let grant = request.extensions().get::<Grant>().filter(|_| is_start)?;
    grant.check(Needs::Change).is_ok().then(|| grant.scope.clone())
}

/// The claim in the head of a request. One that cannot be read is refused: without its fence, the command could be
/// started twice.
fn claimed_key(request: &Request) -> Result<Option<ClaimedKey>, Error> {
    let asked = request.headers().get(CLAIM_HEADER).map(HeaderValue::as_bytes);
    let invalid = |_| Error::new(ErrorCode::InvalidRequest, "the claim in the head is invalid");
    asked.map(serde_json::from_slice).transpose().map_err(invalid)
}

/// Whether a key was started here, for gateways alone: what became of the claim in the head.
pub(crate) const KEY_PATH: &str = "/v1/fleet/key";

fn asked_about(request: &Request) -> Result<(Grant, ClaimedKey), Error> {
    let missing = || Error::new(ErrorCode::Unauthorized, "missing token");
    let grant = request.extensions().get::<Grant>().ok_or_else(missing)?;
    grant.check(Needs::Change)?;
    let missing = || Error::new(ErrorCode::InvalidRequest, "the head has no claim");
    Ok((grant.clone(), claimed_key(request)?.ok_or_else(missing)?))
}

async fn tell_of_key(own: &Own, grant: &Grant, asked: &ClaimedKey) -> Response<Body> {
    let key = FenceKey::new(&grant.scope, asked.key.clone());
    // A start that was let through may not be in the journal yet.
    let _turn = own.fence.turn(&key.fence).lock().await;
    let word = if own.engine.keyed(&key.engine).is_some() {
        KeyOnNode::Started
    } else {
        let verdict = own.fence.fence().check(&key.fence, &asked.claim, Instant::now());
        match verdict {
            Verdict::Refused | Verdict::Fenced(_) => KeyOnNode::Never,
            Verdict::Start | Verdict::NotYet => KeyOnNode::NotYet,
        }
    };
    word_of(word).into_response()
}

fn word_of(key: KeyOnNode) -> &'static str {
    match key {
        KeyOnNode::Started => "\"started\"",
        KeyOnNode::Never => "\"never\"",
        KeyOnNode::NotYet => "\"not_yet\"",
    }
}

fn is_drain(request: &Request, name: &str) -> bool {
    let rest = request.uri().path().strip_prefix("/v1/nodes/");
    request.method() == Method::POST && rest == Some(&format!("{name}/drain"))
}

async fn drain(own: &Own, request: Request) -> Result<Response<Body>, Error> {
    let (head, body) = request.into_parts();
    let missing = || Error::new(ErrorCode::Unauthorized, "missing token");
    head.extensions.get::<Grant>().ok_or_else(missing)?.check(Needs::Administer)?;
    let invalid = |_| Error::new(ErrorCode::InvalidRequest, "invalid body: expected `drain`");
    let body = to_bytes(body, 4096).await.map_err(|_| invalid(()))?;
    let body = if body.is_empty() { &b"{}"[..] } else { &body };
    let DrainRequest { drain } = serde_json::from_slice(body).map_err(|_| invalid(()))?;
    let drain = drain != Some(false);
    own.draining.store(drain, Relaxed);
    tracing::info!(drain, "the fleet was told whether this node takes more commands");
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_cannot_be_read_is_refused_and_not_left_out() {
        let with = |head: Option<&str>| {
            let mut request = Request::new(Body::empty());
            if let Some(head) = head {
                request.headers_mut().insert(CLAIM_HEADER, head.parse().unwrap());
            }
            claimed_key(&request).map(|asked| asked.is_some()).map_err(|error| error.code)
        };
        assert_eq!(with(None), Ok(false));
        for broken in ["", "{}", "{\"key\":\"a\"}", "[1"] {
            assert_eq!(with(Some(broken)), Err(ErrorCode::InvalidRequest), "{broken}");
        }
    }
}
