//! The examples in docs/api.md work as written.

use std::fmt::Write as _;

use serde_json::Value;

use crate::daemon::Daemon;
use crate::harness::{Finished, finish};

const PAGE: &str = include_str!("../../../../docs/api.md");
const OPENAPI: &str = include_str!("../../../wire/openapi.json");
const SCHEMA: &str = include_str!("../../../wire/schema.json");

/// The blocks of the page, each with its kind and text.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let inner = PAGE.split("```").skip(1).step_by(2);
    inner.map(|block| block.split_once('\n').unwrap()).collect()
}

#[test]
fn the_examples_print_what_the_page_shows() {
    let daemon = Daemon::start();
    let mut script = String::from("set -eu; cd \"$HOME\"\n");
    let mut expected: Vec<Vec<&str>> = Vec::new();
    for (kind, text) in blocks() {
        match kind {
            // The server is already running.
            "sh" if text.contains("lastbyte serve") => {}
            "sh" => {
                writeln!(script, "echo; echo '=== {}'\n{text}", expected.len()).unwrap();
                expected.push(Vec::new());
            }
            "json" | "text" => expected.last_mut().unwrap().extend(text.lines()),
            other => panic!("a block of kind {other:?}"),
        }
    }
    let mut bash = daemon.fixture.program("bash");
    bash.args(["-c", &script]).env("SOCKET", daemon.socket());
    let Finished { code, stdout, stderr } = finish(bash);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    for (index, lines) in expected.iter().enumerate() {
        let printed = stdout.split(&format!("=== {index}\n")).nth(1).unwrap();
        let printed = printed.split("\n=== ").next().unwrap();
        for line in lines {
            assert!(printed.contains(line), "block {index} has no {line:?}:\n{printed}");
        }
    }
}

/// The part of the page under this heading.
fn section(heading: &str) -> &'static str {
    let after = PAGE.split_once(&format!("\n## {heading}\n")).unwrap().1;
    after.split("\n## ").next().unwrap()
}

#[test]
fn every_kind_of_event_is_listed() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let kinds = schema["$defs"]["EventKind"]["oneOf"].as_array().unwrap();
    assert!(kinds.len() > 1, "{kinds:?}");
    for kind in kinds {
        let name = kind["properties"]["kind"]["const"].as_str().unwrap();
        assert!(section("Events").contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn every_query_parameter_is_named() {
    let document: Value = serde_json::from_str(OPENAPI).unwrap();
    let (mut named, mut missing) = (0, Vec::new());
    for (path, operations) in document["paths"].as_object().unwrap() {
        // The feed has its own list.
        let text = if path == "/v1/events" { section("Events") } else { PAGE };
        for operation in operations.as_object().unwrap().values() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            for parameter in parameters.filter(|parameter| parameter["in"] == "query") {
                let name = parameter["name"].as_str().unwrap();
                let ways = [format!("`{name}`"), format!("{name}=")];
                if ways.iter().any(|way| text.contains(way)) {
                    named += 1
                } else {
                    missing.push(format!("{path}: {name}"))
                }
            }
        }
    }
    assert!(named > 20 && missing.is_empty(), "{named} are named, not {missing:?}");
}
