//! The errors of an operation, by status.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::ErrorCode;

/// What any request can be refused for before a route is looked for. A head that is too large is
/// answered by its status alone.
pub(super) const OF_ALL: [ErrorCode; 16] = [
    ErrorCode::InvalidRequest,
    ErrorCode::Unauthorized,
    ErrorCode::ForbiddenPeer,
    ErrorCode::SandboxedPeer,
    ErrorCode::CrossSite,
    ErrorCode::ReadOnlyToken,
    ErrorCode::SessionToken,
    ErrorCode::PageToken,
    ErrorCode::TooManyFailedTokens,
    ErrorCode::UnknownHost,
    ErrorCode::HeadTooLarge,
    ErrorCode::TooManyConnections,
    ErrorCode::TooManyAnswers,
    ErrorCode::NodeSilent,
    ErrorCode::FleetUnreachable,
    ErrorCode::ShuttingDown,
];

/// What a request with a body can be refused for.
pub(super) const OF_A_BODY: [ErrorCode; 4] = [
    ErrorCode::RequestTooSlow,
    ErrorCode::BodyTooLarge,
    ErrorCode::TooManyBodies,
    ErrorCode::OutOfMemory,
];

/// The answers that tell one of these errors.
pub(super) fn answers(codes: &[ErrorCode]) -> Map<String, Value> {
    let mut by_status: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
    for code in ErrorCode::ALL.iter().filter(|code| codes.contains(code)) {
        by_status.entry(code.http_status()).or_default().push(*code);
    }
    by_status.iter().map(|(status, codes)| (status.to_string(), answer(codes))).collect()
}

fn answer(codes: &[ErrorCode]) -> Value {
    let words: Vec<_> = codes.iter().map(|code| format!("`{}`", code.as_str())).collect();
    let mut answer = json!({ "description": words.join(", ") });
    if codes != [ErrorCode::HeadTooLarge] {
        let schema = json!({ "$ref": "#/components/schemas/ErrorBody" });
        answer["content"] = json!({ "application/json": { "schema": schema } });
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_stands_at_its_status_beside_those_that_all_have() {
        let own = [ErrorCode::NotEnded, ErrorCode::OutputHeld];
        let answers = answers(&[&OF_ALL[..], &own].concat());
        let statuses: Vec<_> = answers.keys().map(String::as_str).collect();
        assert_eq!(statuses, ["400", "401", "403", "409", "421", "429", "431", "503"]);
        assert_eq!(answers["409"]["description"], "`not_ended`, `output_held`");
        assert_eq!(
            answers["403"]["description"],
            "`forbidden_peer`, `sandboxed_peer`, `cross_site`, `read_only_token`, `session_token`, \
             `page_token`"
        );
        assert_eq!(answers["431"], json!({ "description": "`head_too_large`" }));
    }
}
