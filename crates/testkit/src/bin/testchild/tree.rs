//! Actions that make other processes.
//!
//! - `background ACTIONS… end`: a child performs the actions; this process goes on.
//! - `setsid-background ACTIONS… end`: the same, in a session of the child's own.
//! - `double-fork-background ACTIONS… end`: the same, the child being an orphan too.
//! - `tree N KIND`: N descendants that hold; KIND is `plain`, `setsid`, `double` or `mixed`. When
//!   all are in their place and hold on to the anchor it prints their pids, one a line.
//! - `stubborn-tree N`: a mixed tree whose members ignore HUP, INT and TERM.
//! - `fork-bomb LIMIT`: LIMIT descendants in all, each in its own session and holding, each
//!   begetting more the moment it is up. It waits for none of them.
//!
//! A descendant is this program again: a fork without exec would need `unsafe`. It has stdin in
//! common with nobody: there it *answers* its ancestor, saying that it is where it should be, and
//! then stdin is `/dev/null`. So after each of these actions but the last one the descendants
//! have done all of their setting up, and what comes next cannot race with it.
//! For that there are three more actions: `setsid`, `answer`, and `beget ACTIONS… end` (a child
//! with the same stdin, not waited for).
#![expect(clippy::disallowed_methods, reason = "std's way to start children is what is imitated")]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeWriter};
use std::process::{Child, Command, Stdio};

use crate::output::OUT;
use crate::words::Words;

const SHAPES: [Shape; 3] = [Shape::Plain, Shape::Setsid, Shape::Double];

/// How a descendant stands to the process that wanted it.
#[derive(Clone, Copy)]
enum Shape {
    Plain,
    Setsid,
    Double,
}

/// Whether the words up to an `end` belong to the action called `name`.
pub(crate) fn has_actions_of_its_own(name: &str) -> bool {
    matches!(name, "background" | "setsid-background" | "double-fork-background" | "beget")
}

pub(crate) fn background(words: Words<'_>) -> io::Result<()> {
    one(Shape::Plain, words.actions()?)
}

pub(crate) fn setsid_background(words: Words<'_>) -> io::Result<()> {
    one(Shape::Setsid, words.actions()?)
}

pub(crate) fn double_fork_background(words: Words<'_>) -> io::Result<()> {
    one(Shape::Double, words.actions()?)
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
    many(count, shapes, &script("join then answer then hold"))
}

pub(crate) fn stubborn_tree(mut words: Words<'_>) -> io::Result<()> {
    let count = words.number("N")?;
    words.done()?;
    many(count, &SHAPES, &script("ignore 1 2 15 then join then answer then hold"))
}

pub(crate) fn fork_bomb(mut words: Words<'_>) -> io::Result<()> {
    let limit: u64 = words.number("LIMIT")?;
    words.done()?;
    // Each descendant takes its share of the limit with it, so the total needs no shared count.
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

/// A descendant that performs `actions` once it stands where it should.
fn one(shape: Shape, actions: &[OsString]) -> io::Result<()> {
    let (answers, stdin) = io::pipe()?;
    let actions = [&script("answer then"), actions].concat();
    place(shape, &actions, &stdin)?;
    drop(stdin);
    hear(answers, 1).map(drop)
}

/// So many descendants that perform `actions`, which have an `answer` among them; prints who
/// answered.
fn many(count: usize, shapes: &[Shape], actions: &[OsString]) -> io::Result<()> {
    let (answers, stdin) = io::pipe()?;
    for shape in shapes.iter().cycle().take(count) {
        place(*shape, actions, &stdin)?;
    }
    drop(stdin);
    OUT.write(&hear(answers, count)?)
}

/// Starts a descendant of the given shape, whose answer goes to the other end of `stdin`.
fn place(shape: Shape, actions: &[OsString], stdin: &PipeWriter) -> io::Result<()> {
    let stdin = Stdio::from(stdin.try_clone()?);
    match shape {
        Shape::Plain => spawn(actions, stdin).map(drop),
        Shape::Setsid => spawn(&[&script("setsid then"), actions].concat(), stdin).map(drop),
        Shape::Double => {
            let orphan = [&script("beget setsid then"), actions, &script("end")].concat();
            // Once the one in the middle is gone, the descendant has its final parent.
            spawn(&orphan, stdin)?.wait().map(drop)
        }
    }
}

/// The answers of `count` descendants, a line each.
fn hear(answers: io::PipeReader, count: usize) -> io::Result<Vec<u8>> {
    let mut answers = BufReader::new(answers);
    let mut lines = Vec::new();
    for _ in 0..count {
        if answers.read_until(b'\n', &mut lines)? == 0 {
            return Err(io::Error::other("a descendant ended before it was in its place"));
        }
    }
    Ok(lines)
}

fn spawn(actions: &[OsString], stdin: Stdio) -> io::Result<Child> {
    Command::new(std::env::current_exe()?).args(actions).stdin(stdin).spawn()
}

fn script(actions: &str) -> Vec<OsString> {
    actions.split_whitespace().map(|word| OsStr::new(word).to_owned()).collect()
}
