//! Removes comments and the contents of literals from Rust source.

/// `source` with every comment, string and character literal replaced by blanks; line numbers stay
/// the same.
pub(super) fn code_of(source: &str) -> String {
    blank_out(source, |_| true)
}

/// `source` with every comment replaced by blanks; line numbers stay the same.
pub(super) fn without_comments(source: &str) -> String {
    blank_out(source, |text| text.starts_with('/'))
}

/// Replaces the comments and literals that `is_blank` selects by blanks.
fn blank_out(source: &str, is_blank: impl Fn(&str) -> bool) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let SourceToken { kept, blank } = token(first, rest);
        let (kept, after) = rest.split_at(kept);
        let (text, after) = after.split_at(blank);
        code.push_str(kept);
        if is_blank(text) {
            code.extend(text.chars().map(|c| if c == '\n' { c } else { ' ' }));
        } else {
            code.push_str(text);
        }
        rest = after;
    }
    code
}

/// How many bytes of a token are kept, and how many after them are a comment or literal.
struct SourceToken {
    kept: usize,
    blank: usize,
}

fn token(first: char, text: &str) -> SourceToken {
    if text.starts_with("//") {
        SourceToken { kept: 0, blank: text.find('\n').unwrap_or(text.len()) }
    } else if text.starts_with("/*") {
        SourceToken { kept: 0, blank: block_comment(text) }
    } else if first == '"' {
        SourceToken { kept: 0, blank: string(text) }
    } else if first == '\''
        && let Some(blank) = character(text)
    {
        SourceToken { kept: 0, blank }
    } else if is_of_a_word(first) {
        let (word, after) = text.split_at(word(text));
        SourceToken { kept: word.len(), blank: raw_string(word, after) }
    } else {
        SourceToken { kept: first.len_utf8(), blank: 0 }
    }
}

pub(super) fn is_of_a_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn word(text: &str) -> usize {
    text.find(|character| !is_of_a_word(character)).unwrap_or(text.len())
}

/// The length of the raw string that follows its prefix, if one does.
fn raw_string(prefix: &str, text: &str) -> usize {
    let hashes = text.len() - text.trim_start_matches('#').len();
    if !matches!(prefix, "r" | "br" | "cr") || !text[hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", &text[..hashes]);
    let inside = &text[hashes + 1..];
    inside.find(&end).map_or(text.len(), |at| hashes + 1 + at + end.len())
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character literal; `None` if the quote begins a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut inside = text.char_indices().skip(1);
    let (_, first) = inside.next()?;
    if first == '\\' {
        let (after_escaped, _) = inside.nth(1)?;
        return Some(after_escaped + text[after_escaped..].find('\'')? + 1);
    }
    inside.next().filter(|(_, second)| *second == '\'').map(|(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::{code_of, without_comments};

    fn check(source: &str, want: &str) {
        let code = code_of(source);
        assert_eq!(code.split_whitespace().collect::<Vec<_>>().join(" "), want);
        assert_eq!(code.lines().count(), source.lines().count());
    }

    #[test]
    fn comments_and_literals_become_blank() {
        check("a // b\nc", "a c");
        check("a /* b /* c */ d\n */ e", "a e");
        check(r#"f("b \" c", d)"#, "f( , d)");
        check("f(b\"b\", c\"c\", d)", "f(b , c , d)");
        check("f(r#\"b \" c\"#, br\"d\\\", e)", "f(r , br , e)");
        check(r"f('b', '\'', '\u{1f}', '\\', c)", "f( , , , , c)");
    }

    #[test]
    fn only_comments_become_blank() {
        assert_eq!(
            without_comments("f(\"// a\"); // b\n'/' /* c */"),
            "f(\"// a\");     \n'/'        "
        );
    }

    #[test]
    fn lifetimes_and_names_stay() {
        check(
            "fn f<'a>(x: &'a str, r: char) -> &'static str",
            "fn f<'a>(x: &'a str, r: char) -> &'static str",
        );
        check("'outer: loop { break 'outer; }", "'outer: loop { break 'outer; }");
        check("r#type + bar", "r#type + bar");
    }
}
