//! Requests about several processes: each node is sent those that it has, and the answers are one.

use std::collections::BTreeMap;
use std::fmt::Display;

use axum::http::{Method, StatusCode};
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::{self, FuturesUnordered};
use lastbyte_server::listen::Scope;
use lastbyte_wire::{Error, ErrorCode, Selection};
use serde::Deserialize;
use serde_json::{Value, json};

use super::forward::Whole;
use super::list::{gather, name_processes};
use super::locate::id_of;
use super::{Answer, Gateway};
use crate::placement::Bid;

/// All nodes are asked about a name or a part of an id, each over a connection of its own: a request with
/// many of them must not take all descriptors.
const LOCATED_AT_ONCE: usize = 16;

/// The part of a request for each node, and what it is about.
#[derive(Debug, Default)]
struct Parts {
    by_node: BTreeMap<String, Value>,
    /// The ids in the order of the request, and what was found instead of one.
    order: Option<Vec<Result<String, (String, Error)>>>,
}

impl Gateway {
    /// A stop, a signal, or a request to forget.
    pub(super) async fn change_many(&self, scope: &Scope, path: &str, body: Value) -> Answer {
        let Parts { by_node, order } = self.split(scope, path, &body).await?;
        let asked = by_node.iter().map(|(node, body)| async move {
            let answer = self.ask(node, scope, (Method::POST, path), Some(body)).await;
            (node.clone(), answer.and_then(Whole::into_success))
        });
        let (mut answers, failed) = gather(join_all(asked).await.into_iter())?;
        let mut outcomes: Vec<Value> =
            answers.iter_mut().flat_map(|(_, answer)| take_processes(answer)).collect();
        // What was asked of such a node by its id is answered by that id with the error.
        for (node, error) in &failed {
            let ids = by_node[node]["select"]["ids"].as_array();
            let unknown = |id| json!({ "id": id, "error": error });
            outcomes.extend(ids.into_iter().flatten().map(unknown));
        }
        let missing = order.iter().flatten().filter_map(|id| id.as_ref().err());
        outcomes.extend(missing.map(|(id, error)| json!({ "id": id, "error": error })));
        sort(&mut outcomes, order.as_deref(), id_of);
        let mut answer = json!({ "processes": outcomes });
        if !failed.is_empty() {
            let names: Vec<&String> = failed.iter().map(|(node, _)| node).collect();
            answer["silent_nodes"] = json!(names);
        }
        Ok(super::json(StatusCode::OK, &answer))
    }

    /// For all of them, or for the first one on any node. A node that does not answer ends the wait:
    /// what it has can never be known to have met anything.
    pub(super) async fn wait_many(&self, scope: &Scope, body: Value) -> Answer {
        let Parts { by_node, order } = self.split(scope, "/v1/wait", &body).await?;
        if let Some(Err((_, error))) = order.iter().flatten().find(|id| id.is_err()) {
            return Err(error.clone());
        }
        let any = body["any"] == true;
        let mut waits: FuturesUnordered<_> =
            by_node.iter().map(|(node, body)| self.wait_on(node, scope, body.clone())).collect();
        let mut answered: BTreeMap<&String, Vec<Value>> = BTreeMap::new();
        while let Some((node, answer)) = waits.next().await {
            let processes = answer?;
            let has_met = processes.iter().any(|process| process.get("wait").is_some());
            answered.insert(node, processes);
            if any && has_met {
                break;
            }
        }
        drop(waits);
        // The others have met nothing, and are shown as they are.
        let rest = by_node.iter().filter(|(node, _)| !answered.contains_key(node));
        let rest = rest.map(|(node, body)| {
            let mut body = body.clone();
            body["wait"] = json!({ "timeout_ms": 0 });
            self.wait_on(node, scope, body)
        });
        let rest = join_all(rest.collect::<Vec<_>>()).await;
        for (node, answer) in rest {
            let mut processes = answer?;
            processes.iter_mut().filter_map(Value::as_object_mut).for_each(|process| {
                process.remove("wait");
            });
            answered.insert(node, processes);
        }
        let mut processes: Vec<Value> = answered.into_values().flatten().collect();
        sort(&mut processes, order.as_deref(), |outcome| id_of(&outcome["process"]));
        Ok(super::json(StatusCode::OK, &json!({ "processes": processes })))
    }

    async fn wait_on<'a>(
        &self,
        node: &'a String,
        scope: &Scope,
        body: Value,
    ) -> (&'a String, Result<Vec<Value>, Error>) {
        let answer = self.ask(node, scope, (Method::POST, "/v1/wait"), Some(&body)).await;
        let named = answer.and_then(Whole::into_success).map(|mut answer| {
            let mut processes = take_processes(&mut answer);
            processes.iter_mut().for_each(|outcome| name_processes(node, outcome));
            processes
        });
        (node, named)
    }

    async fn split(&self, scope: &Scope, path: &str, body: &Value) -> Result<Parts, Error> {
        let Some(ids) = body["select"].get("ids").filter(|ids| !ids.is_null()) else {
            let every = |node| (node, body.clone());
            let by_node = self.nodes().names().into_iter().map(every).collect();
            return Ok(Parts { by_node, order: None });
        };
        let invalid = |error: &dyn Display| {
            let message = format!("invalid body: `select.ids`: {error}");
            Error::new(ErrorCode::InvalidRequest, message)
        };
        let ids: Vec<String> = Deserialize::deserialize(ids).map_err(|error| invalid(&error))?;
        if ids.len() > Selection::MOST_IDS {
            return Err(invalid(&format!("more than {} entries", Selection::MOST_IDS)));
        }
        let located: Vec<_> = ids.iter().map(|id| self.locate(scope, id)).collect();
        let found: Vec<_> = stream::iter(located).buffered(LOCATED_AT_ONCE).collect().await;
        let mut parts = Parts::default();
        let mut order = Vec::new();
        for (given, found) in ids.iter().zip(found) {
            match found {
                Ok(found) => {
                    let part = parts.by_node.entry(found.node).or_insert_with(|| {
                        let mut part = body.clone();
                        part["select"]["ids"] = json!([]);
                        part
                    });
                    if let Some(ids) = part["select"]["ids"].as_array_mut() {
                        ids.push(json!(found.id));
                    }
                    order.push(Ok(found.id));
                }
                Err(error) => order.push(Err((given.clone(), error))),
            }
        }
        if parts.by_node.is_empty() {
            self.check(scope, path, body).await?;
        }
        Ok(Parts { order: Some(order), ..parts })
    }
}

impl Gateway {
    /// Whether a node takes this request. For one that is about no process of any node, nobody would say
    /// that it is invalid.
    async fn check(&self, scope: &Scope, path: &str, body: &Value) -> Result<(), Error> {
        let Some(Bid { node, .. }) = self.nodes().present().into_iter().next() else {
            return Ok(());
        };
        let mut body = body.clone();
        body["select"]["ids"] = json!([]);
        let answer = self.ask(&node, scope, (Method::POST, path), Some(&body)).await;
        match answer.and_then(Whole::into_success) {
            Err(error) if error.code.http_status() < 500 => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

fn take_processes(answer: &mut Value) -> Vec<Value> {
    answer["processes"].as_array_mut().map(std::mem::take).unwrap_or_default()
}

/// In the order of the request, or newest first.
fn sort(
    outcomes: &mut [Value],
    order: Option<&[Result<String, (String, Error)>]>,
    id: impl Fn(&Value) -> &str,
) {
    let place = |outcome: &Value| {
        let is_it = |wanted: &Result<String, (String, Error)>| match wanted {
            Ok(wanted) | Err((wanted, _)) => wanted == id(outcome),
        };
        order.and_then(|order| order.iter().position(is_it))
    };
    outcomes
        .sort_by(|one, other| place(one).cmp(&place(other)).then_with(|| id(other).cmp(id(one))));
}
