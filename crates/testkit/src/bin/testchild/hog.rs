//! Using too much of something.
//!
//! - `eat-memory [MS]`: takes memory until it is killed, as fast as it can or 1 MiB every MS ms.
//! - `spin`: computes until it is killed.
//! - `open-files`: opens files until that fails, and prints how many it had open and the error.
//! - `grow-file FILE`: writes zeros into FILE until that fails.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use crate::words::Words;

pub(crate) fn eat_memory(mut words: Words<'_>) -> io::Result<()> {
    let pause = if words.is_empty() { 0 } else { words.number("MS")? };
    words.done()?;
    let mut eaten = Vec::new();
    loop {
        // Not zeros: pages of zeros take no memory.
        eaten.push(vec![1_u8; 1 << 20]);
        if pause > 0 {
            #[expect(clippy::disallowed_methods, reason = "it grows slowly on request")]
            thread::sleep(Duration::from_millis(pause));
        }
    }
}

pub(crate) fn spin(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    let mut number = 0_u64;
    loop {
        number = black_box(number.wrapping_add(1));
    }
}

pub(crate) fn open_files(words: Words<'_>) -> io::Result<()> {
    words.done()?;
    let mut open = Vec::new();
    let refused = loop {
        match File::open("/dev/null") {
            Ok(file) => open.push(file),
            Err(error) => break error,
        }
    };
    let (standard, opened) = (3, open.len());
    drop(open);
    let text = format!("{} {:?}", standard + opened, refused.raw_os_error());
    io::stdout().write_all(text.as_bytes())?;
    io::stdout().flush()
}

pub(crate) fn grow_file(mut words: Words<'_>) -> io::Result<()> {
    let file = words.word("FILE")?;
    words.done()?;
    let mut file = File::create(file)?;
    loop {
        file.write_all(&[0; 1 << 16])?;
    }
}
