//! The OpenAPI document: every route of the native API, in the words of these types.

mod operation;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::{
    AttachQuery, ErrorBody, FollowQuery, ForgetQuery, Health, ListAnswer, ListQuery, Output,
    OutputQuery, Process, ResizeRequest, Root, SearchAnswer, SearchQuery, SignalAnswer,
    SignalRequest, StartAnswer, StartRequest, StopProof, StopRequest, Survivor, TimesAnswer,
    TimesQuery, Wait, WaitAnswer, WriteAnswer, WriteQuery,
};
use operation::Operation;

/// The document as it is committed and served.
pub const OPENAPI: &str = include_str!("../openapi.json");

/// The document as the types have it.
pub fn openapi() -> Value {
    let settings = SchemaSettings::draft2020_12();
    let settings =
        settings.with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut schemas = settings.into_generator();
    schemas.subschema_for::<ErrorBody>();
    let mut paths = Map::new();
    let operations = general().into_iter().chain(of_a_process()).chain(of_an_output());
    for (path, method, operation) in operations {
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        methods[method] = operation.document(path, &mut schemas);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "lastbyte",
            "description": "Runs commands and tells the truth about them.",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        // On a unix socket nobody asks for it.
        "security": [{}, { "token": [] }],
    })
}

type Route = (&'static str, &'static str, Operation);

const PROCESSES: &str = "/v1/processes";
const PROCESS: &str = "/v1/processes/{id}";

fn general() -> Vec<Route> {
    let events = Operation::new("readEvents", "What happens to all processes, as it happens");
    vec![
        ("/v1", "get", Operation::new("tellVersion", "What this is").json::<Root>(200)),
        ("/healthz", "get", Operation::new("tellHealth", "Whether it works").json::<Health>(200)),
        (
            PROCESSES,
            "get",
            Operation::new("listProcesses", "Processes, newest first")
                .query::<ListQuery>()
                .json::<ListAnswer>(200),
        ),
        (
            PROCESSES,
            "post",
            Operation::new("startProcess", "Start a command, and wait for it if asked to")
                .body::<StartRequest>()
                .json::<StartAnswer>(200)
                .json::<StartAnswer>(201),
        ),
        ("/v1/events", "get", events.content(200, "text/event-stream")),
        ("/v1/shutdown", "post", Operation::new("shutDown", "Stop everything and end").empty(202)),
        (
            "/openapi.json",
            "get",
            Operation::new("tellApi", "This document").content(200, "application/json"),
        ),
    ]
}

fn of_a_process() -> Vec<Route> {
    vec![
        (PROCESS, "get", Operation::new("showProcess", "One process").json::<Process>(200)),
        (
            PROCESS,
            "delete",
            Operation::new("forgetProcess", "Forget an ended process and its output")
                .query::<ForgetQuery>()
                .empty(204),
        ),
        (
            "/v1/processes/{id}/survivors",
            "get",
            Operation::new("listSurvivors", "Who lives of its tree").json::<Vec<Survivor>>(200),
        ),
        (
            "/v1/processes/{id}/wait",
            "post",
            Operation::new("waitForProcess", "Wait for the first of several things")
                .body::<Wait>()
                .json::<WaitAnswer>(200),
        ),
        (
            "/v1/processes/{id}/stdin",
            "post",
            Operation::new("writeToProcess", "Write to its standard input")
                .query::<WriteQuery>()
                .bytes()
                .json::<WriteAnswer>(200),
        ),
        (
            "/v1/processes/{id}/signal",
            "post",
            Operation::new("signalProcess", "Signal its group")
                .body::<SignalRequest>()
                .json::<SignalAnswer>(200),
        ),
        (
            "/v1/processes/{id}/stop",
            "post",
            Operation::new("stopProcess", "Stop its whole tree, with proof")
                .body::<StopRequest>()
                .json::<StopProof>(200),
        ),
        (
            "/v1/processes/{id}/resize",
            "post",
            Operation::new("resizeTerminal", "Change the size of its terminal")
                .body::<ResizeRequest>()
                .empty(204),
        ),
    ]
}

fn of_an_output() -> Vec<Route> {
    vec![
        (
            "/v1/processes/{id}/output",
            "get",
            Operation::new("readOutput", "A view of its output, or the bytes themselves")
                .query::<OutputQuery>()
                .json::<Output>(200)
                .content(200, "application/octet-stream"),
        ),
        (
            "/v1/processes/{id}/output/search",
            "get",
            Operation::new("searchOutput", "Lines that match")
                .query::<SearchQuery>()
                .json::<SearchAnswer>(200),
        ),
        (
            "/v1/processes/{id}/output/times",
            "get",
            Operation::new("tellTimes", "When its output came")
                .query::<TimesQuery>()
                .json::<TimesAnswer>(200),
        ),
        (
            "/v1/processes/{id}/follow",
            "get",
            Operation::new("followOutput", "Its output as it comes")
                .query::<FollowQuery>()
                .content(200, "text/event-stream")
                .empty(204),
        ),
        (
            "/v1/processes/{id}/attach",
            "get",
            Operation::new("attachToProcess", "Its input and output as a WebSocket")
                .query::<AttachQuery>()
                .empty(101),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_document_is_the_one_of_the_types() {
        let committed: Value = serde_json::from_str(OPENAPI).unwrap();
        assert!(committed == openapi(), "run `cargo xtask openapi` and look at what it changes");
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let document = openapi();
        let text = document.to_string();
        let references =
            text.split("\"$ref\":\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        let mut count = 0;
        for reference in references {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
            count += 1;
        }
        assert!(count > 50, "{count}");
    }
}
