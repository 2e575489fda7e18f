//! The node of a process, by what stands for its id.

use axum::body::Body;
use axum::http::{Method, Request, Uri};
use futures_util::future::join_all;
use lastbyte_engine::Id;
use lastbyte_server::listen::Scope;
use lastbyte_wire::{Error, ErrorCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::forward::silent;
use super::{Answer, Gateway};

/// A process that was found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) node: String,
    /// Its whole id, as far as that is known.
    pub(super) id: String,
}

impl Gateway {
    /// A whole id leads to its node, also if that is silent. For anything else all are asked.
    pub(super) async fn locate(&self, scope: &Scope, given: &str) -> Result<Found, Error> {
        if let Some(id) = whole_id(given)
            && let [node] = &self.nodes().with_tag(id.tag())[..]
        {
            return Ok(Found { node: node.clone(), id: given.into() });
        }
        self.look_everywhere(scope, given).await
    }

    /// A request for a process that was found.
    pub(super) async fn forward_to_process(
        &self,
        found: &Found,
        scope: &Scope,
        mut request: Request<Body>,
    ) -> Answer {
        *request.uri_mut() = with_id(request.uri(), &found.id);
        let shows_process = request.method() == Method::GET
            && request.uri().path().split('/').nth(4).is_none_or(|rest| rest == "receipt")
            || request.uri().path().ends_with("/wait");
        let response = self.forward(&found.node, scope, request).await?;
        if shows_process { super::list::named(&found.node, response).await } else { Ok(response) }
    }

    async fn look_everywhere(&self, scope: &Scope, given: &str) -> Result<Found, Error> {
        // Not a path of one process.
        if given.is_empty() {
            let message = "no process with the id or name ";
            return Err(Error::new(ErrorCode::ProcessNotFound, message));
        }
        let path = format!("/v1/processes/{}", utf8_percent_encode(given, NON_ALPHANUMERIC));
        self.nodes().check_listed()?;
        let (mut found, mut silent_nodes, mut refused) = (Vec::new(), Vec::new(), None);
        let names = self.nodes().names();
        let asked = names.iter().map(|node| self.ask(node, scope, (Method::GET, &path), None));
        for (node, answer) in names.iter().zip(join_all(asked).await) {
            match answer.and_then(super::forward::Whole::into_success) {
                Ok(process) => found.push((node.clone(), process)),
                Err(error) if error.code == ErrorCode::ProcessNotFound => {
                    refused.get_or_insert(error);
                }
                // It does not answer, or fails: what it has is not known either way.
                Err(error) if error.code.http_status() >= 500 => silent_nodes.push(node.clone()),
                Err(error) => return Err(error),
            }
        }
        match choose(given, found)? {
            Some(found) if silent_nodes.is_empty() || whole_id(given).is_some() => Ok(found),
            // A silent node may have one that goes before it, or makes this one ambiguous.
            Some(found) => Err(perhaps_another(given, &found, &silent_nodes)),
            None if !silent_nodes.is_empty() => Err(perhaps_there(given, &silent_nodes)),
            None => Err(refused.unwrap_or_else(|| {
                Error::new(ErrorCode::ProcessNotFound, "the fleet has no nodes")
            })),
        }
    }
}

/// Names and parts of ids may stand for several processes; this stands for one.
fn whole_id(given: &str) -> Option<Id> {
    given.parse::<Id>().ok().filter(|id| id.to_string() == given)
}

fn perhaps_another(given: &str, found: &Found, nodes: &[String]) -> Error {
    let message = format!(
        "which process {given:?} is cannot be known, because these nodes do not answer: {}",
        nodes.join(", ")
    );
    let hint = format!("the others know {} on {}: give a whole id", found.id, found.node);
    Error::new(ErrorCode::NodeSilent, message).hint(hint)
}

fn perhaps_there(given: &str, nodes: &[String]) -> Error {
    let [node] = nodes else {
        let message = format!(
            "no node that answers has a process with the id or name {given}, and these do not \
             answer: {}",
            nodes.join(", ")
        );
        return Error::new(ErrorCode::NodeSilent, message);
    };
    let message =
        format!("no node that answers has a process with the id or name {given}; {}", silent(node));
    Error::new(ErrorCode::NodeSilent, message)
}

/// Of several processes with a name the one that runs, else the newest; `last` is the newest.
fn choose(given: &str, mut found: Vec<(String, Value)>) -> Result<Option<Found>, Error> {
    found.sort_by(|(_, one), (_, other)| id_of(other).cmp(id_of(one)));
    let named = |(_, process): &&(String, Value)| process["name"] == given;
    let runs = |entry: &&(String, Value)| named(entry) && entry.1["phase"] == "running";
    let best = found.iter().find(runs).or_else(|| found.iter().find(named));
    let best = match (best, &found[..]) {
        (Some(best), _) => best,
        (None, []) => return Ok(None),
        (None, [only]) => only,
        (None, [newest, ..]) if given == "last" => newest,
        (None, several) => return Err(ambiguous(given, several)),
    };
    Ok(Some(Found { node: best.0.clone(), id: id_of(&best.1).into() }))
}

fn ambiguous(given: &str, several: &[(String, Value)]) -> Error {
    let ids: Vec<&str> = several.iter().take(5).map(|(_, process)| id_of(process)).collect();
    let message =
        format!("{} process ids start or end with {given:?}: {}", several.len(), ids.join(", "));
    Error::new(ErrorCode::AmbiguousId, message)
}

pub(super) fn id_of(process: &Value) -> &str {
    process["id"].as_str().unwrap_or_default()
}

/// The same with this id in the place of what stood for it.
fn with_id(uri: &Uri, id: &str) -> Uri {
    let rest: Vec<&str> = uri.path().split('/').skip(4).collect();
    let rest = if rest.is_empty() { String::new() } else { format!("/{}", rest.join("/")) };
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("/v1/processes/{id}{rest}{query}").parse().unwrap_or_else(|_| uri.clone())
}
