//! Output exactly as Coder's workspace agent shows it, including its faults: a newline between head
//! and tail even if nothing is omitted, split characters, and long lines that are cut without being
//! counted.
//!
//! The agent keeps the first and the last 16 KiB. It has no dropped ranges; if the log has some,
//! the head ends at the first, the tail begins after the last, and everything not shown counts as
//! omitted.

use std::io;

use super::super::{
    Source,
    mapped_bytes::{MappedBytes, SourcePart, last_bytes, read_parts},
};

const HEAD: usize = 16 * 1024;
const TAIL: usize = 16 * 1024;
const LONGEST_LINE: usize = 2048;
const LINE_CUT: &[u8] = b" ... [truncated]";

/// The `output` and `truncated` fields of the agent's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoderOutput {
    /// The text before UTF-8 repair.
    pub text: Vec<u8>,
    pub truncated: Option<Truncated>,
}

/// The counts for an output of more than 16 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncated {
    pub original_bytes: u64,
    /// The length of the text, inserted text included, before UTF-8 repair: it can exceed the
    /// original.
    pub retained_bytes: u64,
    pub omitted_bytes: u64,
}

/// Renders a log; the source must show all streams.
pub fn coder(source: &dyn Source) -> io::Result<CoderOutput> {
    let total = source.end();
    let head = first_bytes(source)?;
    let shown = head.len() as u64;
    let tail = last_bytes(source, shown..total, TAIL)?;
    let omitted = total - shown - tail.len() as u64;
    let mut text = cut_long_lines(head.bytes());
    if tail.is_empty() && omitted == 0 {
        return Ok(CoderOutput { text, truncated: None });
    }
    if omitted == 0 {
        text.push(b'\n');
    } else {
        text.extend(format!("\n\n... [omitted {omitted} bytes] ...\n\n").into_bytes());
    }
    text.extend(cut_long_lines(tail.bytes()));
    let truncated = Truncated {
        original_bytes: total,
        retained_bytes: text.len() as u64,
        omitted_bytes: omitted,
    };
    Ok(CoderOutput { text, truncated: Some(truncated) })
}

fn first_bytes(source: &dyn Source) -> io::Result<MappedBytes> {
    match read_parts(source, 0..HEAD as u64, HEAD)?.0.into_iter().next() {
        Some(SourcePart::Kept(head)) => Ok(head),
        Some(SourcePart::Dropped(_)) | None => Ok(MappedBytes::default()),
    }
}

fn cut_long_lines(mut bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    while bytes.len() > LONGEST_LINE {
        let is_newline = |byte: &u8| *byte == b'\n';
        // All lines that end here are short, and are copied in one piece.
        let rest = if let Some(newline) = bytes[..=LONGEST_LINE].iter().rposition(is_newline) {
            text.extend_from_slice(&bytes[..=newline]);
            newline + 1
        } else {
            text.extend_from_slice(&bytes[..LONGEST_LINE - LINE_CUT.len()]);
            text.extend_from_slice(LINE_CUT);
            bytes.iter().position(is_newline).unwrap_or(bytes.len())
        };
        bytes = &bytes[rest..];
    }
    text.extend_from_slice(bytes);
    text
}

#[cfg(test)]
mod tests {
    use super::{super::super::Slice, *};

    /// Lines of 64 bytes, none of them long.
    fn lines(len: usize) -> Vec<u8> {
        (0..len).map(|at| if at % 64 == 63 { b'\n' } else { b'a' }).collect()
    }

    fn check_counts(len: usize, want: Option<(u64, u64)>) {
        let bytes = lines(len);
        let output = coder(&Slice::new(&bytes)).unwrap();
        let counts = output.truncated.map(|cut| (cut.retained_bytes, cut.omitted_bytes));
        assert_eq!(counts, want, "{len} bytes");
        if let Some(truncated) = output.truncated {
            assert_eq!(truncated.original_bytes, len as u64);
            assert_eq!(truncated.retained_bytes, output.text.len() as u64);
        }
    }

    #[test]
    fn the_counts_are_those_measured_on_the_agent() {
        check_counts(0, None);
        check_counts(16384, None);
        check_counts(16385, Some((16386, 0)));
        check_counts(32768, Some((32769, 0)));
        check_counts(32769, Some((32797, 1)));
    }

    #[test]
    fn a_line_over_2048_bytes_is_cut_and_its_newline_kept() {
        let check = |input: &[u8], want: &[u8]| {
            let output = coder(&Slice::new(input)).unwrap();
            assert_eq!(output, CoderOutput { text: want.to_vec(), truncated: None });
        };
        let (fits, long) = ([b'x'; 2048], [b'x'; 2049]);
        let cut = [&long[..2032], b" ... [truncated]"].concat();
        check(&fits, &fits);
        check(&[&fits, b"\n".as_slice()].concat(), &[&fits, b"\n".as_slice()].concat());
        check(&long, &cut);
        check(&[&long, b"\r\nb".as_slice()].concat(), &[&cut, b"\nb".as_slice()].concat());
    }

    #[test]
    fn dropped_bytes_of_head_or_tail_count_as_omitted() {
        let output = coder(&Slice::new(b"abcdefgh").without(2..5)).unwrap();
        assert_eq!(output.text, b"ab\n\n... [omitted 3 bytes] ...\n\nfgh");
        let output = coder(&Slice::new(b"abcdefgh").without(0..8)).unwrap();
        assert_eq!(output.text, b"\n\n... [omitted 8 bytes] ...\n\n");
        assert_eq!(output.truncated.map(|cut| cut.omitted_bytes), Some(8));
    }
}
