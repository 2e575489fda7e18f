//! Rust source without its comments and without what its literals say.

/// `source` with every comment, and the inside of every string and character literal, made
/// blank; the lines stay where they are.
pub(super) fn code_of(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let Token { kept, blank } = token(first, rest);
        code.push_str(&rest[..kept]);
        code.extend(rest[kept..kept + blank].chars().map(|c| if c == '\n' { c } else { ' ' }));
        rest = &rest[kept + blank..];
    }
    code
}

/// How many bytes of a token stay, and how many after them become blank.
struct Token {
    kept: usize,
    blank: usize,
}

fn token(first: char, text: &str) -> Token {
    if text.starts_with("//") {
        Token { kept: 0, blank: text.find('\n').unwrap_or(text.len()) }
    } else if text.starts_with("/*") {
        Token { kept: 0, blank: block_comment(text) }
    } else if first == '"' {
        Token { kept: 0, blank: string(text) }
    } else if first == '\''
        && let Some(blank) = character(text)
    {
        Token { kept: 0, blank }
    } else if is_of_a_word(first) {
        let (word, after) = text.split_at(word(text));
        Token { kept: word.len(), blank: raw_string(word, after) }
    } else {
        Token { kept: first.len_utf8(), blank: 0 }
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

/// The length of a character literal; none if the quote begins a lifetime.
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
    use super::code_of;

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
    fn lifetimes_and_names_stay() {
        check(
            "fn f<'a>(x: &'a str, r: char) -> &'static str",
            "fn f<'a>(x: &'a str, r: char) -> &'static str",
        );
        check("'outer: loop { break 'outer; }", "'outer: loop { break 'outer; }");
        check("r#type + bar", "r#type + bar");
    }
}
