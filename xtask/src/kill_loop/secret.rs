//! Commands that print their secrets: what must be stored instead is known byte by byte.

use lastbyte_client::wire::{Secrets, StreamsAsked, Tty};

use super::job::Job;
use crate::random::Random;

/// What is printed: an expression of awk, and what is stored of it. `LONG` begins with `SHORT`, which is
/// `half` and `rest`.
const PIECES: [(&str, &str); 7] = [
    ("short", "***SHORT***"),
    ("long", "***LONG***"),
    (r#"short "-mo.""#, "***SHORT***-mo."),
    (r#"short short "-more""#, "***SHORT******LONG***"),
    (r#"half "\033[31m\r" rest "\033[0m""#, "***SHORT***\u{1b}[0m"),
    (r#"half ".""#, "HALF."),
    (r#""plain text""#, "plain text"),
];

/// Where the output goes.
#[derive(Clone, Copy)]
enum To {
    OnePipe,
    TwoPipes,
    Terminal,
    /// A pipe that a child has after the command has ended.
    Child,
}

/// A program for awk, and what is stored of its standard output and standard error.
#[derive(Default)]
struct Script {
    text: String,
    stored: [String; 2],
}

/// Prints many pieces, some of them slowly, and ends with half of a secret.
pub(super) fn secret(job: &mut Job, random: &mut Random, _base: u64) {
    let half = format!("half of {}:", job.name);
    let short = format!("{half}rest");
    let values = [("SHORT", short.clone()), ("LONG", format!("{short}-more"))];
    job.request.secrets = Secrets(values.map(|(name, value)| (name.to_owned(), value)).into());
    let to = random.one_of(&[To::OnePipe, To::TwoPipes, To::Terminal, To::Child]);
    let mut script = Script::default();
    for _ in 0..random.between(1, 8) {
        let stream = usize::from(matches!(to, To::TwoPipes) && random.percent(40));
        script.print(random, stream, &half);
    }
    let (code, pause) = (random.between(0, 256), random.between(1, 1000));
    let mut late = String::new();
    let program = script.whole(&half);
    let [mut stdout, stderr] = script.stored;
    match to {
        To::OnePipe => stdout += &half,
        To::TwoPipes => {
            stdout += &half;
            job.request.streams = Some(StreamsAsked::Split);
            job.output.stderr = Some(stderr.into_bytes());
        }
        To::Terminal => {
            stdout = (stdout + &half).replace('\n', "\r\n");
            job.request.tty = Some(Tty { rows: 24, cols: 80 });
        }
        To::Child => {
            late = format!("(sleep 0.{pause:03}; echo rest, late) & ");
            stdout += "***SHORT***, late\n";
        }
    }
    job.masked = None;
    if !matches!(to, To::Child) {
        let stderr = job.output.stderr.as_deref().unwrap_or_default();
        let masks =
            |text: &[u8]| text.windows(4).filter(|four| four == b"T***" || four == b"G***").count();
        job.masked = Some((masks(stdout.as_bytes()) + masks(stderr)) as u64);
    }
    job.request.shell = Some(format!("awk '{program}'; printf %s '{half}'; {late}exit {code}"));
    job.output.stdout = stdout.into_bytes();
    job.exits(code);
}

impl Script {
    /// Adds one piece, several times and in chunks, and perhaps a secret with a pause in it.
    fn print(&mut self, random: &mut Random, stream: usize, half: &str) {
        let (piece, stored) = random.one_of(&PIECES);
        let (times, chunk) = (random.between(1, 3000), random.between(1, 50));
        let to = ["/dev/stdout", "/dev/stderr"][stream];
        self.text += &format!(
            "for (i = 1; i <= {times}; i++) {{ print i, {piece} >\"{to}\"; \
             if (i % {chunk} == 0) fflush(\"{to}\") }} fflush(\"{to}\"); "
        );
        for number in 1..=times {
            self.stored[stream] += &format!("{number} {}\n", stored.replace("HALF", half));
        }
        if random.percent(50) {
            let pause = random.between(1, 400);
            self.text += &format!(
                "printf \"%s\", half >\"{to}\"; fflush(\"{to}\"); system(\"sleep 0.{pause:03}\"); \
                 print rest >\"{to}\"; fflush(\"{to}\"); "
            );
            self.stored[stream] += "***SHORT***\n";
        }
    }

    fn whole(&self, half: &str) -> String {
        let variables = format!(
            "short = ENVIRON[\"SHORT\"]; long = ENVIRON[\"LONG\"]; half = \"{half}\"; rest = \"rest\"; "
        );
        format!("BEGIN {{ {variables}{} }}", self.text)
    }
}
