//! Gives parsers of foreign bytes inputs that nobody has thought of.
//!
//! [`fuzz`] mutates a corpus: the files of a target in `tests/fuzz`, and what the test makes with the encoder
//! of a format. It flips, inserts, removes, repeats and joins bytes, and inserts words of a dictionary and
//! remarkable numbers. It is guided only by what a parser answers: an input with an answer that no other had
//! joins the corpus. It does not see which branches were taken, as fuzzers with an instrumented build do.
//!
//! A test runs a fixed number of inputs of a fixed seed; `cargo xtask fuzz` runs them for a time. An input that
//! makes a target panic is written to a file and named. One that ends the program or never returns is not, but its
//! seed repeats it.

use std::collections::HashSet;
use std::fs;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to run, instead of a fixed number of inputs.
const SECONDS: &str = "LASTBYTE_TEST_FUZZ_SECONDS";
const SEED: &str = "LASTBYTE_TEST_FUZZ_SEED";
/// A file with the only input to run.
const INPUT: &str = "LASTBYTE_TEST_FUZZ_INPUT";
const INPUTS: u64 = 20_000;
const LONGEST: usize = 64 << 10;
/// Of the corpus with everything that joins it.
const MOST_KEPT: usize = 5_000;
/// How much more memory the process may take at any time than after the first inputs.
const MOST_MEMORY: u64 = 64 << 20;

/// What inputs are made of.
#[derive(Debug, Default)]
pub struct Corpus<'a> {
    /// The folder in `tests/fuzz`, if there is one, and the name of the target.
    pub name: &'a str,
    /// Besides the files of that folder.
    pub made: Vec<Vec<u8>>,
    pub words: &'a [&'a str],
}

/// Runs `target` on inputs. It panics if an input breaks an invariant, and returns what the parser said, as
/// far as that tells inputs of one kind from those of another.
pub fn fuzz<O: Hash>(corpus: Corpus<'_>, target: impl FnMut(&[u8]) -> O) {
    fuzz_inputs(INPUTS, corpus, target);
}

/// As [`fuzz`], with another number of inputs than usual, for a target that is slow.
#[expect(clippy::print_stderr, reason = "shown if the test fails")]
pub fn fuzz_inputs<O: Hash>(
    count: u64,
    Corpus { name, made, words }: Corpus<'_>,
    mut target: impl FnMut(&[u8]) -> O,
) {
    if let Some(input) = std::env::var_os(INPUT) {
        target(&fs::read(input).expect("the input can be read"));
        return;
    }
    let seed = number(SEED).unwrap_or(1);
    eprintln!("fuzz {name}: {SEED}={seed}");
    let mut run = |input: &[u8]| {
        let _written_on_panic = Running { name, input };
        BuildHasherDefault::<DefaultHasher>::default().hash_one(target(input))
    };
    let mut corpus: Vec<Vec<u8>> = made.into_iter().chain(files(name)).collect();
    assert!(!corpus.is_empty(), "{name} has no corpus");
    let mut answers: HashSet<u64> = corpus.iter().map(|input| run(input)).collect();
    let memory = peak_memory();
    let (mut mutator, mut done) = (Mutator { state: seed }, 0);
    let until = number(SECONDS).map(|seconds| Instant::now() + Duration::from_secs(seconds));
    while until.map_or(done < count, |until| Instant::now() < until) {
        let input = mutator.mutated(&corpus, words);
        if answers.insert(run(&input)) && corpus.len() < MOST_KEPT {
            corpus.push(input);
        }
        done += 1;
    }
    let grown = peak_memory().saturating_sub(memory);
    assert!(grown < MOST_MEMORY, "{name} took {grown} bytes of memory");
    eprintln!("fuzz {name}: {done} inputs, {} different answers", answers.len());
}

/// The input that a target runs on.
struct Running<'a> {
    name: &'a str,
    input: &'a [u8],
}

impl Drop for Running<'_> {
    #[expect(clippy::print_stderr, reason = "shown if the test fails")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let file = kept_input(self.name);
            match fs::write(&file, self.input) {
                Ok(()) => eprintln!("fuzz {}: {INPUT}={} repeats it", self.name, file.display()),
                Err(error) => {
                    eprintln!("fuzz {}: cannot write {}: {error}", self.name, file.display())
                }
            }
        }
    }
}

fn kept_input(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("lastbyte-fuzz-{name}-{}", std::process::id()))
}

fn number(variable: &str) -> Option<u64> {
    Some(std::env::var(variable).ok()?.parse().expect("a number"))
}

/// The committed inputs of a target.
fn files(name: &str) -> Vec<Vec<u8>> {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let own = own.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).to_owned());
    let folder = own.join("../../tests/fuzz").join(name);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    // The order decides what a seed does.
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a corpus can be read")).collect()
}

/// The most memory that this process ever had.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a process can see itself");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.expect("the kernel says it") << 10
}

struct Mutator {
    state: u64,
}

impl Mutator {
    /// An input of the corpus with some changes.
    fn mutated(&mut self, corpus: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
        let mut input = corpus[self.below(corpus.len())].clone();
        // Mostly few: an input that is wrong at its beginning shows nothing else.
        for _ in 0..1 + self.below(4) * self.below(3) {
            self.change(&mut input, corpus, words);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str]) {
        let at = self.below(input.len() + 1);
        let some = at..(at + 1 + self.below(16)).min(input.len());
        match self.below(9) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.below(256) as u8,
            2 if at < input.len() => _ = input.drain(some),
            3 if at < input.len() => {
                let times = [1, 2, 200][self.below(3)];
                let repeated = input[some].repeat(times);
                input.splice(at..at, repeated);
            }
            4 => {
                let other = &corpus[self.below(corpus.len())];
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            5 => self.set_number(input, at),
            6 => input.truncate(at),
            _ if words.is_empty() => input.insert(at, self.below(256) as u8),
            _ => {
                let word = words[self.below(words.len())];
                input.splice(at..at, word.bytes());
            }
        }
    }

    /// Writes a number at which lengths and offsets go wrong.
    fn set_number(&mut self, input: &mut [u8], at: usize) {
        let edge = 1_u64.checked_shl(self.below(65) as u32).unwrap_or(0);
        let number = edge.wrapping_add(self.below(3) as u64).wrapping_sub(1);
        let bytes = [number.to_le_bytes(), number.to_be_bytes()][self.below(2)];
        let size = [1, 2, 4, 8][self.below(4)];
        for (into, byte) in input.iter_mut().skip(at).zip(&bytes[..size]) {
            *into = *byte;
        }
    }

    /// splitmix64.
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn corpus<'a>(name: &'a str, words: &'a [&'a str]) -> Corpus<'a> {
        Corpus { name, made: vec![b"length 7 of it".to_vec()], words }
    }

    #[test]
    fn a_parser_that_trusts_a_word_is_found_and_its_input_is_kept() {
        let found = catch_unwind(AssertUnwindSafe(|| {
            fuzz(corpus("trusts", &["length 9"]), |input| {
                let text = String::from_utf8_lossy(input);
                assert!(!text.starts_with("length 9"), "believed");
            });
        }));
        assert!(found.is_err());
        let file = kept_input("trusts");
        assert!(fs::read(&file).unwrap().starts_with(b"length 9"));
        fs::remove_file(file).unwrap();
    }

    /// Each word is only found behind those that an earlier input has: all at once is too unlikely.
    #[test]
    fn new_answers_lead_further() {
        let (mut longest, words) = (0, ["A", "B", "C", "D", "E", "F"]);
        fuzz(Corpus { name: "leads", made: vec![Vec::new()], words: &words }, |input| {
            let wanted = words.concat();
            let common =
                input.iter().zip(wanted.bytes()).take_while(|(one, other)| **one == *other);
            let common = common.count();
            longest = longest.max(common);
            common
        });
        assert_eq!(longest, words.len());
    }

    #[test]
    fn a_seed_repeats_its_inputs() {
        let inputs = |seed| {
            let mut mutator = Mutator { state: seed };
            let corpus = [b"one".to_vec(), b"another".to_vec()];
            (0..100).map(|_| mutator.mutated(&corpus, &["word"])).collect::<Vec<_>>()
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
    }

    /// It fails when no input runs, so none is written.
    #[test]
    fn a_parser_that_takes_too_much_memory_is_found() {
        let mut hoard = Vec::new();
        let found = catch_unwind(AssertUnwindSafe(|| {
            fuzz_inputs(5_000, corpus("hoards", &[]), |_| hoard.extend_from_slice(&[1; 1 << 14]));
        }));
        assert!(found.is_err());
    }
}
