//! What commands print is foreign, too.

use std::num::NonZeroU16;

use lastbyte_output::views::screen::{Newline, Terminal, render};
use lastbyte_testkit::{Corpus, fuzz_inputs};

use crate::chopped::Chopped;

const WORDS: [&str; 16] = [
    "\x1b[",
    "\x1b]",
    "\x1b[?1049h",
    "\x1b[2J",
    "\x1b[9999;9999H",
    "\x1b[4294967295C",
    "\x1b(0",
    "\x1bc",
    "\r\n",
    "\t",
    "\u{8}",
    "\u{6f22}\u{5b57}",
    "e\u{301}",
    "\x1b[1;2r",
    "\x1b[99999L",
    "\x1bP",
];

/// A screen is the same from a checkpoint in the middle as from the beginning, and has its size.
#[test]
fn no_output_does_harm_to_its_screen() {
    let number = |number| NonZeroU16::new(number).unwrap();
    let corpus = Corpus { name: "screen", words: &WORDS, ..Corpus::default() };
    fuzz_inputs(3_000, corpus, |bytes| {
        // One cell, one row and one column are where a terminal goes wrong first.
        let sizes = [(5, 21), (1, 1), (1, 9), (7, 1), (2, 2)];
        let (rows, cols) = sizes[bytes.len() % sizes.len()];
        let terminal = Terminal { rows: number(rows), cols: number(cols), newline: Newline::Down };
        let source = Chopped::new(bytes.to_vec());
        let whole = render(&source, u64::MAX, terminal, None).unwrap();
        let half = render(&source, bytes.len() as u64 / 2, terminal, None).unwrap();
        let resumed = render(&source, u64::MAX, terminal, half.checkpoint).unwrap();
        assert_eq!((resumed.lines(), resumed.state()), (whole.lines(), whole.state()));
        assert_eq!(whole.lines().len(), rows.into());
        (whole.lines(), whole.cursor)
    });
}
