//! Whether a sandbox is the likely cause of a failure. Nobody can know: a refusal is an error that the
//! program handles itself. Codex looks for words in the output, and so does this.

use lastbyte_engine::Sandbox;

/// In lower case.
const WORDS: [&[u8]; 7] = [
    b"operation not permitted",
    b"permission denied",
    b"read-only file system",
    b"seccomp",
    b"sandbox",
    b"landlock",
    b"failed to write file",
];
/// One less than the longest word has.
const OVERLAP: usize = 22;
const SIGSYS_CODE: i32 = 128 + 31;

/// What the output of a sandboxed command says of it.
#[derive(Debug)]
pub(super) struct Denial {
    is_confined: bool,
    word_found: bool,
    /// The end of what was looked at: a word may be cut in two.
    tail: Vec<u8>,
}

impl Denial {
    pub(super) fn new(sandbox: &Sandbox) -> Self {
        Self { is_confined: sandbox.confines(), word_found: false, tail: Vec::new() }
    }

    pub(super) fn look_at(&mut self, bytes: &[u8]) {
        if !self.is_confined || self.word_found {
            return;
        }
        self.tail.extend(bytes.iter().map(u8::to_ascii_lowercase));
        let text = &self.tail;
        let is_in = |word: &&[u8]| text.windows(word.len()).any(|part| part == *word);
        self.word_found = WORDS.iter().any(is_in);
        self.tail.drain(..text.len().saturating_sub(OVERLAP));
    }

    pub(super) fn is_likely(&self, code: i32) -> bool {
        self.is_confined && code != 0 && (self.word_found || code == SIGSYS_CODE)
    }
}

#[cfg(test)]
mod tests {
    use lastbyte_engine::Network;

    use super::*;

    fn likely(sandbox: Sandbox, output: &[&str], code: i32) -> bool {
        let mut denial = Denial::new(&sandbox);
        output.iter().for_each(|part| denial.look_at(part.as_bytes()));
        denial.is_likely(code)
    }

    #[test]
    fn a_failure_is_a_denial_if_the_output_says_so() {
        let sandbox = || Sandbox::ReadOnly { network: Network::Off };
        assert!(likely(sandbox(), &["sh: cannot create x: Permission denied\n"], 2));
        assert!(likely(sandbox(), &["x".repeat(500).as_str(), "Operation not per", "mitted"], 1));
        assert!(likely(sandbox(), &[], SIGSYS_CODE));
        assert!(!likely(sandbox(), &["Permission denied"], 0), "it succeeded");
        assert!(!likely(sandbox(), &["no such file"], 1));
        assert!(!likely(Sandbox::FullAccess, &["Permission denied"], 1), "without a sandbox");
    }

    #[test]
    fn no_word_is_longer_than_what_is_kept() {
        assert_eq!(WORDS.iter().map(|word| word.len()).max(), Some(OVERLAP + 1));
    }
}
