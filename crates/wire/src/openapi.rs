//! The OpenAPI document: every route of the native API.

mod operation;
mod refusals;

use std::cell::RefCell;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::ErrorCode::{
    AmbiguousId, BadCwd, CapReached, Failed, InvalidPattern, KeyConflict, KeyboardTaken,
    LimitAboveCap, LimitUnavailable, LinkGone, NameTaken, NoNode, NoTerminal, NodeNotFound,
    NotAGateway, NotEnded, OutputHeld, ProcessExited, ProcessNotFound, ProgramNotFound,
    ProgramNotRunnable, RangeNotSatisfiable, SandboxUnavailable, StdinFull, StdinGap, StdinNotOpen,
    TokenNotFound, TooManyWaits, UpgradeRefused,
};
use crate::schema::completed;
use crate::{
    AttachQuery, CreateLinkAnswer, CreateLinkRequest, CreateTokenAnswer, CreateTokenRequest,
    DrainRequest, ErrorBody, EventsQuery, FollowQuery, ForgetManyRequest, ForgetQuery, Health,
    LinesAnswer, LinesQuery, ListAnswer, ListQuery, ManyAnswer, NodesAnswer, Output, OutputQuery,
    Process, Receipt, ResizeRequest, Root, SearchAnswer, SearchQuery, SignalAnswer,
    SignalManyRequest, SignalRequest, StartAnswer, StartRequest, StopManyRequest, StopProof,
    StopRequest, Survivor, TicketAnswer, TimesAnswer, TimesQuery, TokenList, TradeLinkAnswer,
    TradeLinkRequest, UpgradeAnswer, UpgradeRequest, Wait, WaitAnswer, WaitManyAnswer,
    WaitManyRequest, WriteAnswer, WriteQuery, head,
};
use operation::{Field, Operation};

/// The document as it is committed and served.
pub const OPENAPI: &str = include_str!("../openapi.json");

/// The document as the types have it.
pub fn openapi() -> Value {
    let settings = SchemaSettings::draft2020_12();
    let settings =
        settings.with(|settings| settings.definitions_path = "/components/schemas".into());
    let schemas = RefCell::new(settings.into_generator());
    schemas.borrow_mut().subschema_for::<ErrorBody>();
    let mut paths = json!({});
    for operation in operations(&schemas) {
        let (path, method) = (operation.path, operation.method);
        paths[path][method] = operation.into_document();
    }
    completed(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "lastbyte",
            "description": "Runs commands, keeps their output and reports how they ended.",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "paths": paths,
        "components": {
            "schemas": schemas.into_inner().take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        // A unix socket requires none.
        "security": [{}, { "token": [] }],
    }))
}

fn operations(schemas: &RefCell<SchemaGenerator>) -> Vec<Operation<'_>> {
    let get = |path, id, summary| Operation::new(schemas, "get", path, id, summary);
    let post = |path, id, summary| Operation::new(schemas, "post", path, id, summary);
    let delete = |path, id, summary| Operation::new(schemas, "delete", path, id, summary);
    vec![
        get("/v1", "tellVersion", "Name and version of the server").json::<Root>(200),
        get("/healthz", "tellHealth", "Health of the server").json::<Health>(200).for_anybody(),
        get("/metrics", "tellMetrics", "Metrics in the Prometheus text format")
            .content(200, "text/plain; version=0.0.4; charset=utf-8"),
        get("/openapi.json", "tellApi", "This API as an OpenAPI document")
            .content(200, "application/json"),
        post("/v1/shutdown", "shutDown", "Stop all processes and shut down").empty(202),
        post("/v1/upgrade", "upgrade", "Run another version of the server; commands go on")
            .body::<UpgradeRequest>()
            .json::<UpgradeAnswer>(202)
            .refused(&[UpgradeRefused]),
        post("/v1/tokens", "createToken", "Create a token for TCP clients")
            .body::<CreateTokenRequest>()
            .json::<CreateTokenAnswer>(201)
            .refused(&[Failed]),
        get("/v1/tokens", "listTokens", "List the created tokens, without their secrets")
            .json::<TokenList>(200),
        delete("/v1/tokens/{token}", "revokeToken", "Revoke a token, also for open connections")
            .token_id()
            .empty(204)
            .refused(&[TokenNotFound, Failed]),
        post("/v1/links", "createLink", "Create a link that opens the page in a browser, once")
            .optional_body::<CreateLinkRequest>()
            .json::<CreateLinkAnswer>(201)
            .refused(&[
                ProcessNotFound,
                AmbiguousId,
                ProcessExited,
                NoTerminal,
                StdinNotOpen,
                Failed,
            ]),
        post("/v1/links/trade", "tradeLink", "Trade a link for a token, once")
            .body::<TradeLinkRequest>()
            .json::<TradeLinkAnswer>(200)
            .refused(&[LinkGone, Failed])
            .for_anybody(),
        post("/v1/tickets", "createTicket", "Create a ticket that opens one WebSocket")
            .json::<TicketAnswer>(201)
            .refused(&[Failed]),
        get("/v1/nodes", "listNodes", "List the nodes of the fleet")
            .json::<NodesAnswer>(200)
            .refused(&[NotAGateway]),
        delete("/v1/nodes/{node}", "forgetNode", "Forget a node that does not come back")
            .node_name()
            .empty(204)
            .refused(&[NotAGateway, NodeNotFound]),
        post("/v1/nodes/{node}/drain", "drainNode", "Start no more commands on a node")
            .node_name()
            .body::<DrainRequest>()
            .empty(204)
            .refused(&[NotAGateway, NodeNotFound]),
        get("/v1/processes", "listProcesses", "List processes, newest first")
            .query::<ListQuery>()
            .json::<ListAnswer>(200),
        post("/v1/processes", "startProcess", "Start a command, and optionally wait for it")
            .body::<StartRequest>()
            .json::<StartAnswer>(200)
            .json::<StartAnswer>(201)
            .refused(&[InvalidPattern, KeyConflict, NameTaken, BadCwd, SandboxUnavailable])
            .refused(&[LimitUnavailable, LimitAboveCap, CapReached])
            .refused(&[ProgramNotFound, ProgramNotRunnable, Failed, TooManyWaits])
            .refused(&[NotAGateway, NoNode]),
        post("/v1/wait", "waitForProcesses", "Wait for any or all of several processes")
            .body::<WaitManyRequest>()
            .json::<WaitManyAnswer>(200)
            .refused(&[ProcessNotFound, AmbiguousId, InvalidPattern, TooManyWaits, Failed]),
        post("/v1/signal", "signalProcesses", "Send a signal to several processes")
            .body::<SignalManyRequest>()
            .json::<ManyAnswer>(200),
        post("/v1/stop", "stopProcesses", "Stop several processes with their trees, with proof")
            .body::<StopManyRequest>()
            .json::<ManyAnswer>(200),
        post("/v1/forget", "forgetProcesses", "Forget several ended processes and their output")
            .body::<ForgetManyRequest>()
            .json::<ManyAnswer>(200),
        get("/v1/events", "readEvents", "Events of all processes, as they happen")
            .query::<EventsQuery>()
            .head(&[LAST_EVENT_ID])
            .content(200, "text/event-stream")
            .refused(&[TooManyWaits]),
        get("/v1/processes/{id}", "showProcess", "Show a process").json::<Process>(200),
        delete("/v1/processes/{id}", "forgetProcess", "Forget an ended process and its output")
            .query::<ForgetQuery>()
            .empty(204)
            .refused(&[NotEnded, OutputHeld, Failed]),
        get(
            "/v1/processes/{id}/receipt",
            "giveReceipt",
            "What was run, and the hash of its output",
        )
        .json::<Receipt>(200)
        .refused(&[TooManyWaits, Failed]),
        get("/v1/processes/{id}/survivors", "listSurvivors", "List the live processes of its tree")
            .json::<Vec<Survivor>>(200),
        post(
            "/v1/processes/{id}/wait",
            "waitForProcess",
            "Wait for the first of several conditions",
        )
        .body::<Wait>()
        .json::<WaitAnswer>(200)
        .refused(&[InvalidPattern, TooManyWaits, Failed]),
        post("/v1/processes/{id}/stdin", "writeToProcess", "Write to its standard input")
            .query::<WriteQuery>()
            .bytes()
            .json::<WriteAnswer>(200)
            .refused(&[ProcessExited, StdinNotOpen, StdinGap, StdinFull, KeyboardTaken]),
        post("/v1/processes/{id}/signal", "signalProcess", "Send a signal to its process group")
            .body::<SignalRequest>()
            .json::<SignalAnswer>(200)
            .refused(&[Failed]),
        post("/v1/processes/{id}/stop", "stopProcess", "Stop its whole tree, with proof")
            .optional_body::<StopRequest>()
            .json::<StopProof>(200),
        post("/v1/processes/{id}/resize", "resizeTerminal", "Change the size of its terminal")
            .body::<ResizeRequest>()
            .empty(204)
            .refused(&[NoTerminal, ProcessExited, KeyboardTaken, Failed]),
        get(
            "/v1/processes/{id}/output",
            "readOutput",
            "Read its output, as a view or as raw bytes",
        )
        .query::<OutputQuery>()
        .head(&PARTS)
        .json::<Output>(200)
        .content(200, "application/octet-stream")
        .content(206, "application/octet-stream")
        .empty(304)
        .answer_head(200, &RAW)
        .answer_head(206, &RAW)
        .refused(&[RangeNotSatisfiable, TooManyWaits, Failed]),
        get("/v1/processes/{id}/output/search", "searchOutput", "Search its output")
            .query::<SearchQuery>()
            .json::<SearchAnswer>(200)
            .refused(&[InvalidPattern, TooManyWaits, Failed]),
        get("/v1/processes/{id}/output/lines", "findLines", "Where lines of its output begin")
            .query::<LinesQuery>()
            .json::<LinesAnswer>(200)
            .refused(&[TooManyWaits, Failed]),
        get("/v1/processes/{id}/output/times", "tellTimes", "When its output was written")
            .query::<TimesQuery>()
            .json::<TimesAnswer>(200)
            .refused(&[Failed]),
        get("/v1/processes/{id}/follow", "followOutput", "Follow its output as server-sent events")
            .query::<FollowQuery>()
            .head(&[LAST_EVENT_ID])
            .content(200, "text/event-stream")
            .empty(204)
            .refused(&[TooManyWaits]),
        get(
            "/v1/processes/{id}/attach",
            "attachToProcess",
            "Its input and output over a WebSocket",
        )
        .query::<AttachQuery>()
        .empty(101)
        .refused(&[TooManyWaits]),
    ]
}

const LAST_EVENT_ID: (&str, &str) =
    (head::LAST_EVENT_ID, "The id of the last event seen, to continue after it.");

/// Headers of a request for output that is complete.
const PARTS: [(&str, &str); 3] = [
    ("range", "Which bytes of a raw answer: `bytes=FIRST-LAST`."),
    ("if-range", "Answer with the range only if the ETag is this one, else with everything."),
    ("if-none-match", "Answer with 304 if the ETag is one of these."),
];

/// Headers of a raw answer.
const RAW: [Field; 9] = [
    ("etag", "string", "Only if the output is complete."),
    (head::FROM, "integer", "The offset of the first byte in the log."),
    (head::NEXT, "integer", "The cursor to continue from."),
    (head::TOTAL, "integer", "The length of the log in bytes, including late output."),
    (head::DROPPED, "string", "The ranges of the log that were dropped, as `start-end`."),
    (head::PHASE, "string", "The state of the process."),
    (head::LOG_OPEN, "boolean", "Whether more output can come."),
    (
        head::FINAL_LEN,
        "integer",
        "Where the output ends and late output starts, once that is known.",
    ),
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
