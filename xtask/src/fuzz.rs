//! `cargo xtask fuzz [TARGET]`: runs the fuzz targets, which are tests, for a time instead of a number of inputs.
//!
//! One after the other, each in a run of its own, so that one that fails does not keep the others from running.
#![expect(clippy::print_stdout, reason = "prints results")]
#![expect(clippy::disallowed_methods, reason = "it runs cargo")]

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

const USAGE: &str = "usage: cargo xtask fuzz [TARGET]… [--minutes N] [--seed S]";

/// A name, what cargo is told to build, and the test.
const TARGETS: &[(&str, &[&str], &str)] = &[
    ("coder", &["lastbyte-server", "--lib"], "doors::coder::request::tests::no_body_does_harm"),
    (
        "json-rpc",
        &["lastbyte-server", "--lib"],
        "doors::codex::jsonrpc::tests::no_message_does_harm",
    ),
    (
        "exec-server",
        &["lastbyte-server", "--lib"],
        "doors::exec_server::message::tests::no_message_does_harm",
    ),
    (
        "env-hook",
        &["lastbyte-server", "--lib"],
        "env_hook::printed::tests::nothing_that_is_printed_does_harm",
    ),
    ("journal", &["lastbyte-engine", "--lib"], "journal::fuzz::no_record_does_harm"),
    ("frames", &["lastbyte-engine", "--lib"], "journal::fuzz::no_frame_does_harm"),
    ("index", &["lastbyte-output", "--lib"], "log::index::fuzz::no_index_does_harm"),
    ("screen", &["lastbyte-output", "--test", "views"], "fuzz::no_output_does_harm_to_its_screen"),
    ("keeper", &["lastbyte-keeper", "--lib"], "message::tests::no_message_does_harm"),
    ("http", &["lastbyte-server", "--lib"], "listen::fuzz::no_head_does_harm"),
    ("websocket", &["lastbyte-server", "--lib"], "doors::websocket::fuzz::no_frame_does_harm"),
    ("attach", &["lastbyte-server", "--lib"], "doors::http::attach::tests::no_message_does_harm"),
    ("mcp", &["lastbyte-server", "--lib"], "doors::mcp::fuzz::no_message_does_harm"),
    ("config", &["lastbyte-cli", "--bin", "lastbyte"], "config::file::tests::no_file_does_harm"),
    ("sse", &["lastbyte-client", "--lib"], "sse::tests::no_stream_does_harm"),
];

struct Options {
    targets: Vec<String>,
    minutes: u64,
    seed: u64,
}

/// Returns failure if a target fails.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let options = Options::parse(arguments)?;
    let known: Vec<&str> = TARGETS.iter().map(|(name, ..)| *name).collect();
    for name in &options.targets {
        ensure!(
            known.contains(&name.as_str()),
            "unknown target {name}; there are {}",
            known.join(", ")
        );
    }
    let mut passed = true;
    for (name, package, test) in TARGETS {
        if options.targets.is_empty() || options.targets.iter().any(|target| target == name) {
            passed &= run_target(&options, name, package, test)?;
        }
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_target(options: &Options, name: &str, package: &[&str], test: &str) -> Result<bool> {
    let done = Command::new("cargo")
        .args(["test", "--quiet", "--package"])
        .args(package)
        .args(["--", "--exact", "--nocapture", test])
        .env("LASTBYTE_TEST_FUZZ_SECONDS", (options.minutes * 60).to_string())
        .env("LASTBYTE_TEST_FUZZ_SEED", options.seed.to_string())
        .output()
        .context("cannot run cargo")?;
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let result = said
        .lines()
        .rfind(|line| line.starts_with(&format!("fuzz {name}: ")) && line.contains("inputs"));
    match result.filter(|_| done.status.success()) {
        Some(result) => println!("{result}"),
        // A name that no test has passes, too.
        None => println!("fuzz {name}: FAILED\n{said}"),
    }
    Ok(result.is_some() && done.status.success())
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut own = Self { targets: Vec::new(), minutes: 10, seed: 1 };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut number = || rest.next().and_then(|value| value.parse().ok()).context(USAGE);
            match argument.as_str() {
                "--minutes" => own.minutes = number()?,
                "--seed" => own.seed = number()?,
                option if option.starts_with("--") => bail!(USAGE),
                target => own.targets.push(target.to_owned()),
            }
        }
        Ok(own)
    }
}
