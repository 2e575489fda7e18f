//! Tasks of the workspace: `cargo xtask tidy`, `schema`, `openapi`, `cli-doc`,
//! `cargo xtask bench [NAME…]`.
#![expect(clippy::print_stderr, reason = "a program for the terminal")]

mod bench;
mod cli_doc;
mod openapi;
mod schema;
mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((task, [])) if task == "tidy" => tidy::run(),
        Some((task, [])) if task == "schema" => schema::write().map(|()| ExitCode::SUCCESS),
        Some((task, [])) if task == "openapi" => openapi::write().map(|()| ExitCode::SUCCESS),
        Some((task, [])) if task == "cli-doc" => cli_doc::write().map(|()| ExitCode::SUCCESS),
        Some((task, [])) if task == "empty-route" => {
            bench::empty_route().map(|()| ExitCode::SUCCESS)
        }
        Some((task, [])) if task == "encode-and-write" => {
            bench::encode_and_write().map(|()| ExitCode::SUCCESS)
        }
        Some((task, names)) if task == "bench" => bench::run(names).map(|()| ExitCode::SUCCESS),
        _ => {
            eprintln!("usage: cargo xtask tidy | schema | openapi | cli-doc | bench [NAME]…");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
