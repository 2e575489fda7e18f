//! Checks every answer of a test against the OpenAPI document.

use std::sync::LazyLock;

use hyper::Response;
use lastbyte_wire::OPENAPI;
use serde_json::Value;

static PATHS: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str::<Value>(OPENAPI).expect("the document is JSON")["paths"].take()
});

/// Fails if the document has the operation but not this answer.
pub(crate) fn check<B>(method: &str, path: &str, answer: &Response<B>) {
    let path = path.split('?').next().unwrap_or_default();
    let operation = PATHS.as_object().unwrap().iter().find(|(known, _)| is(known, path));
    let Some(operation) = operation.and_then(|(_, all)| all.get(method.to_lowercase())) else {
        return;
    };
    let status = answer.status();
    let documented = operation["responses"].get(status.as_str());
    let documented = documented.unwrap_or_else(|| panic!("{method} {path}: {status} is unknown"));
    let kind = answer.headers().get("content-type").map(|kind| kind.to_str().unwrap());
    let kinds = documented.get("content").map(|kinds| kinds.as_object().unwrap());
    match (kinds, kind) {
        (None, None) => {}
        (Some(kinds), Some(kind)) if kinds.contains_key(kind) => {}
        other => panic!("{method} {path}: {status}: {other:?}"),
    }
}

/// Whether the path matches the template.
fn is(template: &str, path: &str) -> bool {
    let same =
        |(known, given): (&str, &str)| known == "{id}" || known == "{token}" || known == given;
    template.split('/').count() == path.split('/').count()
        && template.split('/').zip(path.split('/')).all(same)
}
