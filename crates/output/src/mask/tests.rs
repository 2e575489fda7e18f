use proptest::prelude::*;

use super::control::{Token, token};
use super::*;

fn secrets(values: &[&[u8]]) -> Vec<Secret> {
    let secret = |(value, name): (&&[u8], char)| Secret::new(name, *value).unwrap();
    values.iter().zip('A'..).map(secret).collect()
}

fn masked(secrets: &[Secret], chunks: &[&[u8]]) -> (String, u64) {
    let mut masker = Masker::new(Arc::new(Patterns::new(secrets).unwrap()));
    let mut out = Vec::new();
    chunks.iter().for_each(|chunk| masker.push(chunk, &mut out));
    masker.finish(&mut out);
    (String::from_utf8_lossy(&out).into_owned(), masker.masked())
}

fn check(values: &[&[u8]], input: &[u8], want: &str) {
    let secrets = secrets(values);
    assert_eq!(masked(&secrets, &[input]).0, want);
    for cut in 0..=input.len() {
        let (one, other) = input.split_at(cut);
        assert_eq!(masked(&secrets, &[one, other]).0, want, "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(masked(&secrets, &bytes).0, want, "byte by byte");
}

#[test]
fn a_secret_is_masked_wherever_it_is_cut() {
    check(&[b"hunter2"], b"it is hunter2, hunter2hunter", "it is ***A***, ***A***hunter");
}

#[test]
fn of_overlapping_secrets_the_longest_of_the_first_wins() {
    check(&[b"abcd", b"abcdefgh"], b"abcdefgh abcdefg abcd", "***B*** ***A***efg ***A***");
    check(&[b"bcde", b"abcdef"], b"abcdef abcde", "***B*** a***A***");
    check(&[b"abcd", b"cdef"], b"abcdef", "***A***ef");
    check(&[b"same", b"same"], b"same", "***A***");
    check(&[b"aaaa"], b"aaaaaaaaa", "***A******A***a");
}

#[test]
fn terminal_control_does_not_hide_a_secret() {
    check(&[b"secret"], b"sec\x1b[31mret", "***A***");
    check(
        &[b"secret"],
        b"\x1b[1ms\x1b[38;2;1;2;3me\x1b(Bcr\re\x1b[mt\x1b[0m.",
        "\x1b[1m***A***\x1b[0m.",
    );
    check(&[b"two\nlines"], b"two\r\nlines\r\n", "***A***\r\n");
    check(&[b"two\r\nlines"], b"two\nlines two\r\nlines", "***A*** ***A***");
    check(&[b"secret"], b"sec\x1b]0;title\x07ret", "sec\x1b]0;title\x07ret");
}

#[test]
fn a_secret_that_looks_like_terminal_control_is_masked() {
    check(&[b"[secret"], b"\x1b[secret", "\x1b***A***");
    check(&[b"1234"], b"\x1b[1234m", "\x1b[***A***m");
    check(&[b"31mabc"], b"\x1b[31mabc", "\x1b[***A***");
}

#[test]
fn too_much_terminal_control_ends_a_secret() {
    let far = [b"sec".as_slice(), &[b'\r'; 65], b"ret"].concat();
    check(&[b"secret"], &far, &String::from_utf8_lossy(&far));
    check(&[b"secret"], &[b"sec".as_slice(), &[b'\r'; 64], b"ret"].concat(), "***A***");
}

#[test]
fn only_what_may_become_a_secret_is_held_back() {
    let mut masker = Masker::new(Arc::new(Patterns::new(&secrets(&[b"secret"])).unwrap()));
    let mut out = Vec::new();
    masker.push(b"password: \x1b[0m", &mut out);
    assert_eq!((out.as_slice(), masker.undecided()), (&b"password: \x1b[0m"[..], 0));
    masker.push(b"sec", &mut out);
    assert_eq!((out.len(), masker.undecided()), (14, 3));
    for _ in 0..100 {
        masker.push(b"\r\x1b[31m", &mut out);
    }
    assert_eq!(masker.undecided(), 0, "the control is too long by now");
}

#[test]
fn a_few_shown_bytes_do_not_unmask_the_rest() {
    for (rest, want) in [(&b"cret!"[..], "yese***A***!"), (b"at", "yeseat"), (b"", "yese")] {
        let mut masker = Masker::new(Arc::new(Patterns::new(&secrets(&[b"secret"])).unwrap()));
        let mut out = Vec::new();
        masker.push(b"yese", &mut out);
        assert_eq!(out, b"ye");
        masker.show_few(&mut out);
        masker.show_few(&mut out);
        assert_eq!(out, b"yese");
        masker.push(rest, &mut out);
        masker.finish(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), want);
    }
    let mut masker = Masker::new(Arc::new(Patterns::new(&secrets(&[b"secret"])).unwrap()));
    let mut out = Vec::new();
    masker.push(b"sec", &mut out);
    masker.show_few(&mut out);
    assert_eq!(out, b"", "three bytes of six are too many");
}

#[test]
fn neither_debug_nor_an_error_shows_a_value() {
    let secret = Secret::new("TOKEN", "hunter2").unwrap();
    let patterns = Patterns::new(std::slice::from_ref(&secret)).unwrap();
    let masker = Masker::new(Arc::new(patterns));
    let shown = format!("{secret:?} {masker:?}");
    assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
    for value in ["abc", "", "a\rb\rc", "hun\0ter2", &"x".repeat(Secret::LONGEST + 1)] {
        let text = Secret::new("TOKEN", value).unwrap_err().to_string();
        assert!(text.contains("TOKEN"), "{text}");
        assert!(value.is_empty() || !text.contains(&format!(" {value}")), "{text}");
    }
    for name in ["", "1A", "A-B", "A B", &"N".repeat(65)] {
        assert!(matches!(Secret::new(name, "hunter2"), Err(SecretError::Name { .. })), "{name:?}");
    }
}

/// The same, byte by byte over the whole text.
fn naive(secrets: &[Secret], text: &[u8]) -> (Vec<u8>, u64) {
    let (mut out, mut masked, mut at, mut control_end) = (Vec::new(), 0, 0, 0);
    while at < text.len() {
        if at >= control_end
            && let Token::Control(len) = token(&text[at..], End::Here)
        {
            control_end = at + len;
        }
        let forms = secrets.iter().flat_map(|secret| {
            let plain = control::without_control(secret.value());
            [secret.value().to_vec(), plain].map(|form| (secret.name(), form))
        });
        let ends = forms.flat_map(|(name, form)| {
            let raw = text[at..].starts_with(&form).then_some(at + form.len());
            let plain = (at >= control_end).then(|| naive_end(text, at, &form)).flatten();
            raw.into_iter().chain(plain).map(move |end| (end, name))
        });
        // The first of those that end last.
        match ends.reduce(|best, other| if other.0 > best.0 { other } else { best }) {
            Some((end, name)) => {
                out.extend_from_slice(format!("***{name}***").as_bytes());
                (at, control_end, masked) = (end, end, masked + 1);
            }
            None => {
                out.push(text[at]);
                at += 1;
            }
        }
    }
    (out, masked)
}

fn naive_end(text: &[u8], from: usize, form: &[u8]) -> Option<usize> {
    let mut at = from;
    for (index, byte) in form.iter().enumerate() {
        let begin = at;
        while index > 0
            && at < text.len()
            && let Token::Control(len) = token(&text[at..], End::Here)
        {
            at += len;
        }
        if at - begin > 64 || text.get(at) != Some(byte) {
            return None;
        }
        at += 1;
    }
    Some(at)
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(b"aaabbb\r\n\x1b[[3m(]".to_vec());
    prop::collection::vec(byte, 0..most)
}

/// Text with parts of secrets in it, which chance alone would hardly make.
fn text(values: Vec<Vec<u8>>) -> impl Strategy<Value = (Vec<Vec<u8>>, Vec<u8>)> {
    let part = (0..values.len(), 0..12usize, 0..12usize, bytes(8));
    prop::collection::vec(part, 0..12).prop_map(move |parts| {
        let part = |(which, from, len, other): (usize, usize, usize, Vec<u8>)| {
            let value = values[which].iter().copied().skip(from / 3).take(len.max(3));
            value.chain(other).collect::<Vec<u8>>()
        };
        (values.clone(), parts.into_iter().flat_map(part).collect())
    })
}

fn values() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let is_secret = |value: &Vec<u8>| Secret::new("A", value.clone()).is_ok();
    prop::collection::vec(bytes(12).prop_filter("long enough", is_secret), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_chunks_give_what_the_whole_text_gives(
        (values, text) in values().prop_flat_map(text),
        cuts in prop::collection::vec(1..9usize, 1..9),
        resume_at in 0..20usize,
    ) {
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let secrets = secrets(&values);
        let patterns = Arc::new(Patterns::new(&secrets).unwrap());
        let (mut masker, mut out) = (Masker::new(Arc::clone(&patterns)), Vec::new());
        let (mut at, mut lengths) = (0, cuts.into_iter().cycle());
        for step in 0.. {
            let len = lengths.next().unwrap().min(text.len() - at);
            masker.push(&text[at..at + len], &mut out);
            at += len;
            if step == resume_at {
                at -= masker.undecided();
                masker = Masker::resume(Arc::clone(&patterns), masker.state());
                masker.push(&text[at..], &mut out);
                at = text.len();
            }
            if at == text.len() && step >= resume_at {
                break;
            }
        }
        masker.finish(&mut out);
        let (want, count) = naive(&secrets, &text);
        prop_assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&want));
        prop_assert_eq!(masker.masked(), count);
    }
}
