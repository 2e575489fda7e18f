//! The OpenAPI document: every route of the native API, in the words of these types.

mod operation;
mod refusals;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::ErrorCode::{
    BadCwd, Failed, InvalidPattern, KeyConflict, NoTerminal, NotEnded, OutputHeld, ProcessExited,
    ProcessNotFound, ProgramNotFound, ProgramNotRunnable, RangeNotSatisfiable, SandboxUnavailable,
    StdinFull, StdinGap, StdinNotOpen, TooManyWaits,
};
use crate::integers::with_ends;
use crate::{
    AttachQuery, ErrorBody, EventsQuery, FollowQuery, ForgetQuery, Health, ListAnswer, ListQuery,
    Output, OutputQuery, Process, ResizeRequest, Root, SearchAnswer, SearchQuery, SignalAnswer,
    SignalRequest, StartAnswer, StartRequest, StopProof, StopRequest, Survivor, TimesAnswer,
    TimesQuery, Wait, WaitAnswer, WriteAnswer, WriteQuery, head,
};
use operation::{Field, Operation};

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
    with_ends(json!({
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
    }))
}

type Route = (&'static str, &'static str, Operation);

const PROCESSES: &str = "/v1/processes";
const PROCESS: &str = "/v1/processes/{id}";

fn general() -> Vec<Route> {
    let metrics = Operation::new("tellMetrics", "Numbers in the text format of Prometheus");
    vec![
        ("/v1", "get", Operation::new("tellVersion", "What this is").json::<Root>(200)),
        (
            "/healthz",
            "get",
            Operation::new("tellHealth", "Whether it works").json::<Health>(200).for_anybody(),
        ),
        ("/metrics", "get", metrics.content(200, "text/plain; version=0.0.4; charset=utf-8")),
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
                .json::<StartAnswer>(201)
                .refused(&[InvalidPattern, KeyConflict, BadCwd, SandboxUnavailable])
                .refused(&[ProgramNotFound, ProgramNotRunnable, Failed, TooManyWaits]),
        ),
        (
            "/v1/events",
            "get",
            Operation::new("readEvents", "What happens to all processes, as it happens")
                .query::<EventsQuery>()
                .head(&[LAST_EVENT_ID])
                .content(200, "text/event-stream")
                .refused(&[TooManyWaits]),
        ),
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
        (
            PROCESS,
            "get",
            Operation::new("showProcess", "One process")
                .json::<Process>(200)
                .refused(&[ProcessNotFound]),
        ),
        (
            PROCESS,
            "delete",
            Operation::new("forgetProcess", "Forget an ended process and its output")
                .query::<ForgetQuery>()
                .empty(204)
                .refused(&[ProcessNotFound, NotEnded, OutputHeld, Failed]),
        ),
        (
            "/v1/processes/{id}/survivors",
            "get",
            Operation::new("listSurvivors", "Who lives of its tree")
                .json::<Vec<Survivor>>(200)
                .refused(&[ProcessNotFound]),
        ),
        (
            "/v1/processes/{id}/wait",
            "post",
            Operation::new("waitForProcess", "Wait for the first of several things")
                .body::<Wait>()
                .json::<WaitAnswer>(200)
                .refused(&[ProcessNotFound, InvalidPattern, TooManyWaits, Failed]),
        ),
        (
            "/v1/processes/{id}/stdin",
            "post",
            Operation::new("writeToProcess", "Write to its standard input")
                .query::<WriteQuery>()
                .bytes()
                .json::<WriteAnswer>(200)
                .refused(&[ProcessNotFound, ProcessExited, StdinNotOpen, StdinGap, StdinFull]),
        ),
        (
            "/v1/processes/{id}/signal",
            "post",
            Operation::new("signalProcess", "Signal its group")
                .body::<SignalRequest>()
                .json::<SignalAnswer>(200)
                .refused(&[ProcessNotFound, Failed]),
        ),
        (
            "/v1/processes/{id}/stop",
            "post",
            Operation::new("stopProcess", "Stop its whole tree, with proof")
                .optional_body::<StopRequest>()
                .json::<StopProof>(200)
                .refused(&[ProcessNotFound]),
        ),
        (
            "/v1/processes/{id}/resize",
            "post",
            Operation::new("resizeTerminal", "Change the size of its terminal")
                .body::<ResizeRequest>()
                .empty(204)
                .refused(&[ProcessNotFound, NoTerminal, ProcessExited, Failed]),
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
                .head(&PARTS)
                .json::<Output>(200)
                .content(200, "application/octet-stream")
                .content(206, "application/octet-stream")
                .empty(304)
                .answer_head(200, &RAW)
                .answer_head(206, &RAW)
                .refused(&[ProcessNotFound, RangeNotSatisfiable, TooManyWaits, Failed]),
        ),
        (
            "/v1/processes/{id}/output/search",
            "get",
            Operation::new("searchOutput", "Lines that match")
                .query::<SearchQuery>()
                .json::<SearchAnswer>(200)
                .refused(&[ProcessNotFound, InvalidPattern, TooManyWaits, Failed]),
        ),
        (
            "/v1/processes/{id}/output/times",
            "get",
            Operation::new("tellTimes", "When its output came")
                .query::<TimesQuery>()
                .json::<TimesAnswer>(200)
                .refused(&[ProcessNotFound, Failed]),
        ),
        (
            "/v1/processes/{id}/follow",
            "get",
            Operation::new("followOutput", "Its output as it comes")
                .query::<FollowQuery>()
                .head(&[LAST_EVENT_ID])
                .content(200, "text/event-stream")
                .empty(204)
                .refused(&[ProcessNotFound, TooManyWaits]),
        ),
        (
            "/v1/processes/{id}/attach",
            "get",
            Operation::new("attachToProcess", "Its input and output as a WebSocket")
                .query::<AttachQuery>()
                .empty(101)
                .refused(&[ProcessNotFound, TooManyWaits]),
        ),
    ]
}

const LAST_EVENT_ID: (&str, &str) =
    (head::LAST_EVENT_ID, "The id of the event that was seen last, to go on behind it.");

/// Of a request for an answer that does not change any more.
const PARTS: [(&str, &str); 3] = [
    ("range", "Which bytes of a raw answer: `bytes=FIRST-LAST`."),
    ("if-range", "Only if the answer has this tag, else all of it."),
    ("if-none-match", "Nothing if the answer has one of these tags."),
];

/// Of a raw answer.
const RAW: [Field; 9] = [
    ("etag", "string", "Of an answer that does not change any more."),
    (head::FROM, "integer", "Where the bytes begin in the log."),
    (head::NEXT, "integer", "The cursor to go on from."),
    (head::TOTAL, "integer", "How many bytes the log has, late output included."),
    (head::DROPPED, "string", "The ranges of the log that are gone, as `start-end`."),
    (head::PHASE, "string", "Where in its life the process is."),
    (head::LOG_OPEN, "boolean", "Whether more can come."),
    (head::FINAL_LEN, "integer", "Where the output proper ends, once that is known."),
    (head::ENDING, "string", "The ending as JSON in ASCII."),
];

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

    #[test]
    fn no_parameter_can_be_null() {
        let document = openapi();
        let paths = document["paths"].as_object().unwrap().values();
        for operation in paths.flat_map(|methods| methods.as_object().unwrap().values()) {
            let parameters = operation["parameters"].to_string();
            assert!(!parameters.contains("null"), "{parameters}");
        }
    }
}
