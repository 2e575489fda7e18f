//! `exec_command`: starts a command and waits for its end, or until it asks for input.

use std::collections::BTreeMap;
use std::path::Path;

use lastbyte_wire::{
    Error, Met, OnTimeout, Sandbox, StartRequest, Stdin, StreamsAsked, Tty, Wait, mcp,
};
use serde_json::{Value, json};

use super::args::{Args, missing, wrong};
use super::call::{Answer, Call};
use super::facts;
use super::reply::Budget;
use super::tools::{LONGEST_WAIT_MS, USUAL_YIELD_MS};
use crate::from_wire::invalid;
use crate::verbs::refusal::broken;
use crate::verbs::{start, wait};

/// A command in the background is waited for this long, so that one that fails at once says so.
const BACKGROUND_YIELD_MS: u64 = 250;
/// From a timeout to the end of a command that has to be killed.
const STOPPED_MS: u64 = 6_000;
/// Wide enough that programs do not wrap their lines early.
const TERMINAL: Tty = Tty { rows: 24, cols: 120 };

pub(super) async fn exec_command(call: &Call, args: &Args) -> Answer {
    let budget = Budget::new(args.number("max_output_tokens")?);
    let request = request(call, args)?;
    let patience = patience(args)?;
    let _permit = call.app().begin_wait()?;
    let started = start::start(call.app(), &request).await?;
    let process = call.app().process(&started.process.id);
    let process = process.ok_or_else(|| broken("starting the command"))?;
    let ended = Wait {
        exit: Some(true),
        timeout_ms: Some(patience),
        // It would wait for its answer for as long as we wait for its end.
        needs_input: request.stdin.is_some().then_some(true),
        ..Wait::default()
    };
    let ended = wait::until(call.app(), &process, wait::Conditions::new(&ended)?);
    let (met, snapshot) = call.until(std::slice::from_ref(&process), ended).await??;
    let mut lead: Vec<String> =
        started.warnings.iter().map(|warning| format!("warning: {warning}")).collect();
    if started.attached && args.has("key") {
        lead.push("this key had started it before; it was not started again".into());
    }
    if let Met::Timeout { .. } = met {
        lead.push(format!("still running after waiting {} s for it", patience as f64 / 1000.0));
    }
    lead.extend(facts::needs_input(&met));
    call.evidence(&process, snapshot, 0, (budget, lead)).await
}

/// How long to wait for its end. Who gives a timeout wants to know whether it passed.
fn patience(args: &Args) -> Result<u64, Error> {
    let timeout = args.number("timeout")?.map(|timeout| timeout.saturating_add(STOPPED_MS));
    let usual = match timeout {
        _ if args.flag("run_in_background")? => BACKGROUND_YIELD_MS,
        Some(timeout) => timeout,
        None => USUAL_YIELD_MS,
    };
    Ok(args.number("yield_time_ms")?.unwrap_or(usual).min(LONGEST_WAIT_MS))
}

fn request(call: &Call, args: &Args) -> Result<StartRequest, Error> {
    let shim = call.context.meta.get(mcp::LAUNCH);
    let (command, shell) = program(args)?;
    let tty = args.flag("tty")?;
    let open = args.word("stdin", &["closed", "open"])? == Some(1);
    let on_timeout = args.word("on_timeout", &["kill", "background"])?;
    Ok(StartRequest {
        command,
        shell,
        cwd: directory(args, shim)?,
        env: env(args, shim)?,
        stdin: (tty || open).then_some(Stdin::Open),
        tty: tty.then_some(TERMINAL),
        streams: (!tty).then_some(StreamsAsked::Merged),
        timeout_ms: args.number("timeout")?,
        idle_timeout_ms: args.number("idle_timeout")?,
        on_timeout: on_timeout.map(|nth| [OnTimeout::Stop, OnTimeout::Background][nth]),
        sandbox: sandbox(args)?,
        key: key(call, args)?,
        name: args.text("name")?.map(str::to_owned),
        ..StartRequest::default()
    })
}

/// A shell command, for the shell that is asked for; a list is a program and its arguments.
fn program(args: &Args) -> Result<(Option<Vec<String>>, Option<String>), Error> {
    let text = match args.value("command") {
        None => return Err(missing("command")),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(words)) => {
            let words = words.iter().map(|word| word.as_str().map(str::to_owned));
            let words: Option<Vec<_>> = words.collect();
            return Ok((Some(words.ok_or_else(|| wrong("command", "a string"))?), None));
        }
        Some(_) => return Err(wrong("command", "a string")),
    };
    let login = args.flag("login")?;
    match args.text("shell")? {
        None if !login => Ok((None, Some(text))),
        shell => {
            let option = if login { "-lc" } else { "-c" };
            Ok((Some(vec![shell.unwrap_or("sh").into(), option.into(), text]), None))
        }
    }
}

/// The one that is given, below that of the client if it is relative; else that of the client.
fn directory(args: &Args, shim: Option<&Value>) -> Result<Option<String>, Error> {
    let own = shim.and_then(|shim| shim["cwd"].as_str());
    let Some(given) = args.text("workdir")?.filter(|given| !given.is_empty()) else {
        return Ok(own.map(str::to_owned));
    };
    let path = match own {
        Some(own) => Path::new(own).join(given).to_string_lossy().into_owned(),
        None => given.to_owned(),
    };
    if path.starts_with('/') {
        return Ok(Some(path));
    }
    Err(invalid("`workdir` must be an absolute path"))
}

/// The client's variables, and the given ones over them.
fn env(args: &Args, shim: Option<&Value>) -> Result<BTreeMap<String, Option<String>>, Error> {
    let mut env = BTreeMap::new();
    let own = shim.and_then(|shim| shim["env"].as_object()).into_iter().flatten();
    for (name, value) in own {
        env.insert(name.clone(), value.as_str().map(str::to_owned));
    }
    let expected = || wrong("env", "an object of strings");
    match args.value("env") {
        None => {}
        Some(Value::Object(given)) => {
            for (name, value) in given {
                let value = match value {
                    Value::Null => None,
                    Value::String(text) => Some(text.clone()),
                    Value::Number(number) => Some(number.to_string()),
                    _ => return Err(expected()),
                };
                env.insert(name.clone(), value);
            }
        }
        Some(_) => return Err(expected()),
    }
    Ok(env)
}

/// A policy, or the word for its kind.
fn sandbox(args: &Args) -> Result<Option<Sandbox>, Error> {
    let policy = match args.value("sandbox") {
        None => return Ok(None),
        Some(Value::String(kind)) => json!({ "kind": kind.replace('-', "_") }),
        Some(policy) => policy.clone(),
    };
    let policy = serde_json::from_value(policy);
    policy.map(Some).map_err(|error| {
        invalid(format!("invalid `sandbox`: {error}"))
            .hint("use full_access, read_only or workspace_write")
    })
}

/// The given one, or one for this call, so that a shim can repeat it. The two never meet.
fn key(call: &Call, args: &Args) -> Result<Option<String>, Error> {
    let given = args.text("key")?.map(|key| format!("mcp:{key}"));
    Ok(given.or_else(|| call.client.call.as_ref().map(|call| format!("mcp-call:{call}"))))
}
