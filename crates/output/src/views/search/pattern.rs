//! Compiles an untrusted pattern into a regex of bounded cost.

use regex::bytes::{Regex, RegexBuilder};

/// The longest pattern in bytes.
const LONGEST: usize = 4 * 1024;
/// The limit for a compiled pattern, and for its cache while it runs.
const LARGEST: usize = 1024 * 1024;

/// Why a pattern is rejected.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    #[error("the pattern has {length} bytes, more than {LONGEST}")]
    TooLong { length: usize },
    #[error("the pattern is larger than {LARGEST} bytes when compiled")]
    TooLarge,
    #[error("invalid regular expression: {}", reason(.0))]
    Syntax(regex::Error),
}

/// Compiles a pattern in the syntax of the `regex` crate, which matches in linear time. Unicode is
/// on; `(?-u)` matches bytes.
pub fn compile(pattern: &str) -> Result<Regex, PatternError> {
    if pattern.len() > LONGEST {
        return Err(PatternError::TooLong { length: pattern.len() });
    }
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(LARGEST).dfa_size_limit(LARGEST);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => PatternError::TooLarge,
        error => PatternError::Syntax(error),
    })
}

/// The reason alone: the crate's text repeats the pattern, on several lines.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    text.rsplit_once("error: ").map_or(&*text, |(_, reason)| reason).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_costs_too_much_is_rejected_with_the_reason() {
        assert!(matches!(compile(r"(\w{100}){100}"), Err(PatternError::TooLarge)));
        assert!(matches!(compile("(?:a{1000}){1000}"), Err(PatternError::TooLarge)));
        assert!(matches!(compile("a("), Err(PatternError::Syntax(_))));
        let text = compile("a(").unwrap_err().to_string();
        assert_eq!(text, "invalid regular expression: unclosed group");
        let long = "a".repeat(4097);
        assert!(matches!(compile(&long), Err(PatternError::TooLong { length: 4097 })));
        assert!(matches!(compile(&"(".repeat(4096)), Err(PatternError::Syntax(_))));
    }

    #[test]
    fn an_ordinary_pattern_is_accepted() {
        for pattern in ["", r"(?i)error\b.*\w+", r"^\s*at \S+ \(.*:\d+\)$", r"(?-u)\xFF"] {
            assert!(compile(pattern).is_ok(), "{pattern}");
        }
    }
}
