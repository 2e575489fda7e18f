//! Actions that make other processes.
//!
//! - `background ACTIONS… end`: a child performs the actions; this process continues.
//! - `setsid-background ACTIONS… end`: the same, in a new session.
//! - `double-fork-background ACTIONS… end`: the same, and the child is an orphan.
//! - `tree N KIND`: N descendants that hold; KIND is `plain`, `setsid`, `double` or `mixed`. Prints
//!   their pids, one per line, when all are set up and connected to the anchor.
//! - `stubborn-tree N`: a mixed tree whose members ignore HUP, INT and TERM.
//! - `fork-bomb LIMIT`: LIMIT descendants in total, each in its own session and holding, each
//!   starting more at once. It waits for none of them.
//! - `leave-tail`: exits with 0 and leaves a child that keeps the output open: it prints `ta`, waits
//!   30 ms, prints `il`, then holds.
//! - `leave-silent-holder`: the same, but the child only holds.
//! - `leave-chatty-holder MS`: the same, but the child writes the next byte of the pattern every MS.
//!
//! A descendant is this program again: a fork without exec would need `unsafe`. Its stdin is a pipe
//! to its ancestor, on which it *answers* once it is set up; then stdin becomes `/dev/null`. So after
//! each of these actions except `fork-bomb` the descendants are set up, and later actions cannot
//! race with them. Three more actions exist for this purpose: `setsid`, `answer`, and
//! `beget ACTIONS… end` (a child with the same stdin, not waited for).
#![expect(clippy::disallowed_methods, reason = "it starts children as other programs do")]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeWriter};
use std::process::{Child, Command, Stdio};

use crate::output::OUT;
use crate::words::Words;

const SHAPES: [Shape; 3] = [Shape::Plain, Shape::Setsid, Shape::Double];

/// How a descendant is related to this process.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    Plain,
    Setsid,
    Double,
}

/// Whether the action `name` contains actions up to an `end`.
pub(crate) fn has_nested_actions(name: &str) -> bool {
    matches!(name, "background" | "setsid-background" | "double-fork-background" | "beget")
}

pub(crate) fn background(shape: Shape, words: Words<'_>) -> io::Result<()> {
    start_one(shape, words.actions()?)
}

pub(crate) fn tree(mut words: Words<'_>) -> io::Result<()> {
    let count = words.number("N")?;
    let kind = words.word("KIND")?;
    words.done()?;
    let shapes: &[Shape] = match kind.to_str() {
        Some("plain") => &[Shape::Plain],
        Some("setsid") => &[Shape::Setsid],
        Some("double") => &[Shape::Double],
        Some("mixed") => &SHAPES,
        _ => return Err(io::Error::other("a tree is plain, setsid, double or mixed")),
    };
    start_many(count, shapes, &script("join then answer then hold"))
}

pub(crate) fn stubborn_tree(words: Words<'_>) -> io::Result<()> {
    let count = words.only_number("N")?;
    start_many(count, &SHAPES, &script("ignore 1 2 15 then join then answer then hold"))
}

pub(crate) fn fork_bomb(words: Words<'_>) -> io::Result<()> {
    let limit: u64 = words.only_number("LIMIT")?;
    // Each descendant gets a share of the limit, so no shared counter is needed.
    let first = limit.div_ceil(2);
    for share in [first, limit - first].into_iter().filter(|share| *share > 0) {
        let actions = script(&format!("setsid then fork-bomb {} then hold", share - 1));
        spawn(&actions, Stdio::null())?;
    }
    Ok(())
}

pub(crate) fn beget(words: Words<'_>) -> io::Result<()> {
    spawn(words.actions()?, Stdio::inherit()).map(drop)
}

pub(crate) fn setsid(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    rustix::process::setsid()?;
    Ok(())
}

pub(crate) fn answer(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    let line = format!("{}\n", std::process::id());
    rustix::io::write(rustix::stdio::stdin(), line.as_bytes())?;
    Ok(rustix::stdio::dup2_stdin(File::open("/dev/null")?)?)
}

pub(crate) fn leave_tail(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    leave("print ta then sleep-ms 30 then print il then hold")
}

pub(crate) fn leave_silent_holder(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    leave("hold")
}

pub(crate) fn leave_chatty_holder(words: Words<'_>) -> io::Result<()> {
    let period: u64 = words.only_number("MS")?;
    leave(&format!("chatter {period} {}", OUT.offset()))
}

fn leave(actions: &str) -> io::Result<()> {
    start_one(Shape::Plain, &script(actions))?;
    std::process::exit(0)
}

/// Starts a descendant that performs `actions` once it is set up.
fn start_one(shape: Shape, actions: &[OsString]) -> io::Result<()> {
    let (answers, stdin) = io::pipe()?;
    let actions = [&script("answer then"), actions].concat();
    start_shaped(shape, &actions, &stdin)?;
    drop(stdin);
    read_answers(answers, 1).map(drop)
}

/// Starts `count` descendants that perform `actions`, which include an `answer`; prints their pids.
fn start_many(count: usize, shapes: &[Shape], actions: &[OsString]) -> io::Result<()> {
    let (answers, stdin) = io::pipe()?;
    for shape in shapes.iter().cycle().take(count) {
        start_shaped(*shape, actions, &stdin)?;
    }
    drop(stdin);
    OUT.write(&read_answers(answers, count)?)
}

/// Starts a descendant whose answer goes to the other end of `stdin`.
fn start_shaped(shape: Shape, actions: &[OsString], stdin: &PipeWriter) -> io::Result<()> {
    let stdin = Stdio::from(stdin.try_clone()?);
    match shape {
        Shape::Plain => spawn(actions, stdin).map(drop),
        Shape::Setsid => spawn(&[&script("setsid then"), actions].concat(), stdin).map(drop),
        Shape::Double => {
            let orphan = [&script("beget setsid then"), actions, &script("end")].concat();
            // Once the intermediate process has exited, the descendant has its final parent.
            spawn(&orphan, stdin)?.wait().map(drop)
        }
    }
}

/// Reads the answers of `count` descendants, one per line.
fn read_answers(answers: io::PipeReader, count: usize) -> io::Result<Vec<u8>> {
    let mut answers = BufReader::new(answers);
    let mut lines = Vec::new();
    for _ in 0..count {
        if answers.read_until(b'\n', &mut lines)? == 0 {
            return Err(io::Error::other("a descendant exited before it was set up"));
        }
    }
    Ok(lines)
}

fn spawn(actions: &[OsString], stdin: Stdio) -> io::Result<Child> {
    Command::new(std::env::current_exe()?).args(actions).stdin(stdin).spawn()
}

fn script(actions: &str) -> Vec<OsString> {
    actions.split_whitespace().map(Into::into).collect()
}
