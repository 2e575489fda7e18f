//! The processes of all nodes as one list, newest first.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, Method, Response, StatusCode, Uri, header};
use futures_util::future::join_all;
use lastbyte_server::listen::Scope;
use lastbyte_wire::{Error, ErrorCode};
use serde_json::{Value, json};

use super::forward::Whole;
use super::locate::id_of;
use super::{Answer, Gateway};

/// The default of the API.
const USUAL_LIMIT: usize = 100;
const MOST_BYTES: usize = 16 << 20;

impl Gateway {
    /// One page. Ids sort by time on all nodes, so each node's page of the same length is enough.
    pub(super) async fn list(&self, scope: &Scope, uri: &Uri) -> Answer {
        let path = uri.path_and_query().map_or("/v1/processes", |path| path.as_str());
        let (pages, silent) = self.ask_all(scope, (Method::GET, path), None).await?;
        let limit = uri.query().into_iter().flat_map(|query| query.split('&'));
        let limit = limit.filter_map(|pair| pair.strip_prefix("limit=")?.parse().ok()).next_back();
        Ok(super::json(StatusCode::OK, &merge(pages, limit.unwrap_or(USUAL_LIMIT), silent)))
    }

    /// What each node answers, and the nodes that do not.
    pub(super) async fn ask_all(
        &self,
        scope: &Scope,
        (method, path): (Method, &str),
        body: Option<&Value>,
    ) -> Result<(Vec<(String, Value)>, Vec<String>), Error> {
        crate::connect::check_connected(&self.own.client)?;
        self.nodes().check_listed()?;
        let names = self.nodes().names();
        let asked = names.iter().map(|node| self.ask(node, scope, (method.clone(), path), body));
        let answers = join_all(asked).await.into_iter();
        let answers = answers.map(|answer| answer.and_then(Whole::into_success));
        let (answers, failed) = gather(names.clone().into_iter().zip(answers))?;
        Ok((answers, failed.into_iter().map(|(node, _)| node).collect()))
    }
}

type Each<T> = Vec<(String, T)>;

/// What nodes have answered, and how others failed. If all refuse the request, that is the answer: they
/// check the same.
pub(super) fn gather(
    all: impl Iterator<Item = (String, Result<Value, Error>)>,
) -> Result<(Each<Value>, Each<Error>), Error> {
    let (mut answers, mut failed) = (Vec::new(), Vec::new());
    for (node, answer) in all {
        match answer {
            Ok(answer) => answers.push((node, answer)),
            Err(error) => {
                if error.code != ErrorCode::NodeSilent {
                    tracing::warn!(node, code = error.code.as_str(), "a node has failed a request");
                }
                failed.push((node, error));
            }
        }
    }
    let is_refusal = |(_, error): &&(String, Error)| error.code != ErrorCode::NodeSilent;
    match failed.iter().find(is_refusal) {
        Some((_, error)) if answers.is_empty() => Err(error.clone()),
        Some(_) | None => Ok((answers, failed)),
    }
}

fn merge(pages: Vec<(String, Value)>, limit: usize, silent: Vec<String>) -> Value {
    let mut has_more = false;
    let (mut processes, mut survived) = (Vec::new(), None::<Vec<Value>>);
    for (node, mut page) in pages {
        has_more |= page.get("next").is_some();
        for mut process in page["processes"].as_array_mut().map(std::mem::take).unwrap_or_default()
        {
            process["node"] = json!(node);
            processes.push(process);
        }
        if let Some(ids) = page.get_mut("survived").and_then(Value::as_array_mut) {
            survived.get_or_insert_default().append(ids);
        }
    }
    processes.sort_by(|one, other| id_of(other).cmp(id_of(one)));
    has_more |= processes.len() > limit;
    processes.truncate(limit);
    let mut answer = json!({});
    if has_more && let Some(last) = processes.last() {
        answer["next"] = json!(id_of(last));
    }
    if let Some(mut ids) = survived {
        ids.retain(|id| processes.iter().any(|process| process["id"] == *id));
        answer["survived"] = Value::Array(ids);
    }
    if !silent.is_empty() {
        answer["silent_nodes"] = json!(silent);
    }
    answer["processes"] = Value::Array(processes);
    answer
}

/// An answer about a process, with the name of its node.
pub(super) async fn named(node: &str, response: Response<Body>) -> Answer {
    let is_json = response.headers().get(header::CONTENT_TYPE)
        == Some(&HeaderValue::from_static("application/json"));
    if !response.status().is_success() || !is_json {
        return Ok(response);
    }
    let (mut head, body) = response.into_parts();
    let broken =
        |_| Error::new(ErrorCode::NodeSilent, format!("the answer of {node} is not whole"));
    let bytes = to_bytes(body, MOST_BYTES).await.map_err(broken)?;
    let Ok(mut value) = serde_json::from_slice::<Value>(&bytes) else {
        return Ok(Response::from_parts(head, Body::from(bytes)));
    };
    name_processes(node, &mut value);
    head.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(head, Body::from(value.to_string())))
}

pub(super) fn name_processes(node: &str, value: &mut Value) {
    if value.get("phase").is_some() && value.get("pid").is_some() {
        value["node"] = json!(node);
    } else if let Some(process) = value.get_mut("process") {
        process["node"] = json!(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ids: &[&str], next: Option<&str>) -> Value {
        let processes: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
        let mut page = json!({ "processes": processes });
        if let Some(next) = next {
            page["next"] = json!(next);
        }
        page
    }

    #[test]
    fn a_node_that_fails_is_named_beside_the_answers_of_the_others() {
        let error = |code| Err(Error::new(code, "no"));
        let of = |answers: Vec<Result<Value, Error>>| {
            let gathered = gather(["a", "b"].map(str::to_owned).into_iter().zip(answers));
            gathered.map(|(answers, failed)| (answers.len(), failed.len())).map_err(|e| e.code)
        };
        for code in [ErrorCode::NodeSilent, ErrorCode::TooManyWaits, ErrorCode::InvalidRequest] {
            assert_eq!(of(vec![Ok(json!({})), error(code)]), Ok((1, 1)), "{code:?}");
        }
        let refused = vec![error(ErrorCode::NodeSilent), error(ErrorCode::InvalidRequest)];
        assert_eq!(of(refused), Err(ErrorCode::InvalidRequest));
        assert_eq!(of(vec![error(ErrorCode::NodeSilent)]), Ok((0, 1)));
    }

    #[test]
    fn pages_of_nodes_are_one_page_newest_first() {
        let pages =
            || vec![("a".into(), page(&["7", "3"], None)), ("b".into(), page(&["5"], None))];
        let all = merge(pages(), 10, vec![]);
        assert_eq!(all["processes"][1], json!({ "id": "5", "node": "b" }));
        assert_eq!((all.get("next"), all.get("silent_nodes")), (None, None));
        let some = merge(pages(), 2, vec!["c".into()]);
        assert_eq!(some["next"], "5", "the next page begins after the last of this one");
        assert_eq!(some["silent_nodes"], json!(["c"]));
        let more = merge(
            vec![("a".into(), page(&["7"], Some("7"))), ("b".into(), page(&[], None))],
            9,
            vec![],
        );
        assert_eq!(more["next"], "7", "a node has more");
    }
}
