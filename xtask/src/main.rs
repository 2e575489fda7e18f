//! Tasks of the workspace: `cargo xtask tidy`, `tree-size`, `schema`, `openapi`, `cli-doc`,
//! `bench [NAME…]`, `cost`, `kill-loop`, `soak`, `fuzz`, `power-loss`, `vm-tests`, `dist`.
#![expect(clippy::print_stderr, reason = "a command-line program")]

mod bench;
mod chart;
mod dist;
mod documents;
mod fuzz;
mod kill_loop;
mod power_loss;
mod random;
mod soak;
mod tidy;
mod vm;
mod vm_tests;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy | tree-size [--of DIR] [--base DIR] | schema | openapi | \
                     cli-doc | bench [NAME]… | cost [--check | --record] | \
                     kill-loop [--kills N] [--seed S] [--upgrade] | \
                     soak [--minutes N] [--seed S] | fuzz [TARGET]… [--minutes N] [--seed S] | power-loss [--kills N] [--seed S] | vm-tests [NAME]… | dist [--out DIR] [--check]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (task, options) =
        arguments.split_first().map_or(("", &[][..]), |(task, options)| (task.as_str(), options));
    let success = |()| ExitCode::SUCCESS;
    let outcome = match (task, options) {
        ("tidy", []) => tidy::run(),
        ("tree-size", options) => tidy::tree_size(options).map(success),
        ("schema", []) => documents::write_schema().map(success),
        ("openapi", []) => documents::write_openapi().map(success),
        ("cli-doc", []) => documents::write_cli_doc().map(success),
        ("empty-route", []) => bench::empty_route().map(success),
        ("longest-write", [seconds]) => bench::write_and_time(seconds).map(success),
        ("encode-and-write", []) => bench::encode_and_write().map(success),
        ("cost", options) => bench::cost(options),
        ("kill-loop", options) => kill_loop::run(options),
        ("fuzz", options) => fuzz::run(options),
        ("soak", options) => soak::run(options),
        ("power-loss", options) => power_loss::run(options),
        ("power-loss-guest", []) => power_loss::run_guest().map(success),
        ("vm-tests", names) => vm_tests::run(names),
        ("vm-tests-guest", []) => vm_tests::run_guest().map(success),
        ("dist", options) => dist::run(options),
        ("bench", names) => bench::run(names).map(success),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
