//! The Coder view compared with a model written from its contract.

use std::collections::VecDeque;

use lastbyte_output::views::head_tail::{CoderOutput, Truncated, coder};
use proptest::prelude::*;

use crate::chopped::{Chopped, whole};

/// The first 16384 bytes go to the head, the rest through a ring buffer of 16384.
fn model(bytes: &[u8]) -> CoderOutput {
    let (mut head, mut ring) = (Vec::new(), VecDeque::new());
    for &byte in bytes {
        if head.len() < 16384 {
            head.push(byte);
        } else {
            if ring.len() == 16384 {
                ring.pop_front();
            }
            ring.push_back(byte);
        }
    }
    let (total, tail) = (bytes.len(), Vec::from(ring));
    if total <= 16384 {
        return CoderOutput { text: cut(&head), truncated: None };
    }
    let omitted = total - head.len() - tail.len();
    let between = if omitted == 0 {
        "\n".to_owned()
    } else {
        format!("\n\n... [omitted {omitted} bytes] ...\n\n")
    };
    let text = [cut(&head), between.into_bytes(), cut(&tail)].concat();
    let truncated = Truncated {
        original_bytes: total as u64,
        retained_bytes: text.len() as u64,
        omitted_bytes: omitted as u64,
    };
    CoderOutput { text, truncated: Some(truncated) }
}

fn cut(text: &[u8]) -> Vec<u8> {
    if text.len() <= 2048 {
        return text.to_vec();
    }
    let lines = text.split(|byte| *byte == b'\n').map(|line| match line.len() {
        0..=2048 => line.to_vec(),
        _ => [&line[..2032], b" ... [truncated]"].concat(),
    });
    lines.collect::<Vec<_>>().join(&b'\n')
}

/// Lines about as long as the limit, and totals about where the rules change.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let length = prop_oneof![0..100_usize, 2040..2056_usize, 3000..9000_usize];
    let line = (length, prop_oneof![Just("\n"), Just("\r\n"), Just("")]);
    let lines = prop::collection::vec(line, 0..40).prop_map(|lines| {
        let line =
            |(len, end): (usize, &str)| ["é".repeat(len / 2).as_bytes(), end.as_bytes()].concat();
        lines.into_iter().flat_map(line).collect::<Vec<u8>>()
    });
    let total = prop_oneof![
        3 => 0..80_000_usize,
        1 => 16380..16390_usize,
        1 => 32764..32774_usize,
    ];
    (lines, total).prop_map(|(lines, total)| lines.into_iter().cycle().take(total).collect())
}

fn check(source: &Chopped) {
    assert_eq!(coder(source).unwrap(), model(&source.bytes));
}

proptest! {
    #[test]
    fn the_view_matches_the_model(source in whole(output())) {
        check(&source);
    }
}
