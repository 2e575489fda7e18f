use std::num::NonZeroU16;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::Slice;
use super::*;

fn terminal(rows: u16, cols: u16, newline: Newline) -> Terminal {
    let number = |number| NonZeroU16::new(number).expect("not 0");
    Terminal { rows: number(rows), cols: number(cols), newline }
}

fn shown(bytes: &[u8], at: u64, checkpoint: Option<Checkpoint>) -> Rendered {
    let terminal = terminal(4, 20, Newline::Down);
    render(&Slice::new(bytes), at, terminal, checkpoint).unwrap()
}

fn check(bytes: &[u8], want: [&str; 4]) {
    assert_eq!(shown(bytes, bytes.len() as u64, None).lines(), want);
}

#[test]
fn text_is_where_a_terminal_shows_it() {
    check(b"one\r\ntwo\rT\r\n", ["one", "Two", "", ""]);
    check(b"gone\x1b[2J\x1b[2;3Hthere", ["", "  there", "", ""]);
    check(b"1\r\n2\r\n3\r\n4\r\n5", ["2", "3", "4", "5"]);
    check("\u{1b}[31m漢字\u{1b}[0m e\u{301}".as_bytes(), ["漢字 e\u{301}", "", "", ""]);
}

#[test]
fn boxes_are_drawn_with_lines() {
    check(b"\x1b(0lqk\x1b(B l\r\n\x1b)0x\x0ex\x0fx", ["┌─┐ l", "x│x", "", ""]);
    check(b"\x1b(0q\x1b]2;q\x07\x1b[1mq\x1bcq", ["q", "", "", ""]);
}

#[test]
fn a_pipe_needs_no_carriage_returns() {
    let terminal = terminal(2, 10, Newline::NextLine);
    let source = Slice::new(b"one\ntwo");
    assert_eq!(render(&source, 7, terminal, None).unwrap().lines(), ["one", "two"]);
}

#[test]
fn cursor_title_and_the_other_screen_are_known() {
    let screen = shown(b"shell\x1b]2;edit\x07\x1b[?1049h\x1b[3;5Hx", u64::MAX, None);
    assert_eq!((screen.cursor, screen.title.as_deref()), (Some((2, 5)), Some("edit")));
    assert!(screen.is_alternate());
    let screen = shown(b"\x1b[?25l", u64::MAX, None);
    assert_eq!((screen.cursor, screen.is_alternate(), screen.title), (None, false, None));
}

#[test]
fn a_title_may_have_semicolons_and_only_the_beginning_of_a_long_one_is_kept() {
    let title = |bytes: &[u8]| shown(bytes, u64::MAX, None).title.unwrap();
    assert_eq!(title(b"\x1b]0;make; make test;\x07"), "make; make test;");
    let long = title(format!("\x1b]2;{}\x07", "\u{e9}".repeat(1 << 20)).as_bytes());
    assert!(long.starts_with('\u{e9}') && (1000..=1024).contains(&long.len()), "{}", long.len());
}

#[test]
fn output_that_is_too_much_work_is_read_from_later_on() {
    // Each would take the terminal minutes or hours.
    for unit in ["x\x1b[65535b", "\x1bc", "\x1b[2J", "\x1b[?1049h\x1b[?25;1049l", "\x1b[500L"] {
        let bytes = format!("{}\r\nend", unit.repeat((4 << 20) / unit.len()));
        let terminal = terminal(500, 500, Newline::Down);
        let screen = render(&Slice::new(bytes.as_bytes()), u64::MAX, terminal, None).unwrap();
        assert!(screen.from > 0, "{unit:?}");
        assert!(screen.lines().contains(&"end".to_owned()), "{unit:?}: {:?}", screen.lines());
    }
    // What programs write is not.
    let frame =
        "\x1b[?25l\x1b[H\x1b[J\x1b[31mred\x1b[m\x1b[2;1Htext of a frame\x1b[5b\x1b[K\r\n\x1b[?25h";
    let bytes = frame.repeat((1 << 20) / frame.len());
    assert_eq!(shown(bytes.as_bytes(), u64::MAX, None).from, 0);
}

#[test]
fn colours_and_modes_can_be_had() {
    let screen = shown(b"\x1b[31mred\x1b[m\x1b[?2004h", u64::MAX, None);
    assert!(screen.lines_with_colours()[0].contains("\x1b[31mred"), "{screen:?}");
    assert!(screen.state().contains("\x1b[?2004h"), "{:?}", screen.state());
}

#[test]
fn the_state_has_the_other_screen_and_modes_that_the_screen_does_not_know() {
    let busy = "\u{1b}[?1049h\u{1b}[?1004;1016h\u{1b}[?7l\u{1b}[>4;2m\u{1b}[>1u\u{1b}[=5utext";
    let state = shown(busy.as_bytes(), u64::MAX, None).state();
    assert!(state.starts_with("\x1b[?1049h") && state.contains("text"), "{state:?}");
    let modes = "\x1b[?1004h\x1b[?1016h\x1b[?7l\x1b[>4;2m\x1b[>5u";
    assert!(state.ends_with(modes), "{state:?}");
    let left = "\u{1b}[?1004;1016l\u{1b}[?7h\u{1b}[>4m\u{1b}[<u\u{1b}[?1049l";
    let state = shown(format!("{busy}{left}").as_bytes(), u64::MAX, None).state();
    assert_eq!(state, shown(b"", 0, None).state());
}

#[test]
fn another_terminal_goes_on_where_no_sequence_is_open() {
    let go_on = |bytes: &[u8]| shown(bytes, u64::MAX, None).state_to_go_on_from();
    assert_eq!(go_on(b"text"), (4, shown(b"text", 4, None).state()));
    assert_eq!(go_on(b"text\x1b[3"), (4, shown(b"text", 4, None).state()));
    assert_eq!(go_on("text é".as_bytes()).0, 5);
    assert_eq!(go_on(b"").0, 0);
}

#[test]
fn a_screen_at_an_earlier_offset_is_the_one_of_then() {
    let bytes = b"one\r\ntwo\r\n";
    assert_eq!(shown(bytes, 5, None).lines(), ["one", "", "", ""]);
    // A checkpoint of later is of no use.
    let later = shown(bytes, 10, None).checkpoint;
    assert_eq!(shown(bytes, 5, later).lines(), ["one", "", "", ""]);
}

#[test]
fn what_was_dropped_is_skipped_and_said() {
    let bytes = b"old\r\nhalf a line\r\nnew\r\n";
    let source = Slice::new(bytes).without(5..9);
    let screen = render(&source, u64::MAX, terminal(4, 20, Newline::Down), None).unwrap();
    assert_eq!(
        (screen.from, screen.lines()),
        (18, ["new", "", "", ""].map(str::to_owned).to_vec())
    );
}

#[test]
fn only_the_end_of_a_long_log_is_read_without_a_checkpoint() {
    let line = [b'x'; 100];
    let mut bytes = b"\x1b[?2004h".to_vec();
    while bytes.len() as u64 <= WINDOW {
        bytes.extend_from_slice(&line);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"end");
    let len = bytes.len() as u64;
    let screen = shown(&bytes, len, None);
    assert!((len - WINDOW..len - WINDOW + 200).contains(&screen.from), "{}", screen.from);
    assert_eq!(screen.lines()[3], "end");
    assert!(!screen.state().contains("\x1b[?2004h"));
    // With one it is known what was said long before.
    let early = shown(&bytes, len - 1000, shown(&bytes, 4096, None).checkpoint).checkpoint;
    let screen = shown(&bytes, len, early);
    assert_eq!(screen.from, 0);
    assert!(screen.state().contains("\x1b[?2004h"));
}

/// Text, sequences of all kinds, broken ones, and bytes at random.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let sequence = prop_oneof![
        4 => "[a-z ]{0,8}".prop_map(String::into_bytes),
        2 => Just(b"\r\n".to_vec()),
        2 => "\x1b\\[[0-9;?]{0,6}[A-Za-z@`]".prop_map(String::into_bytes),
        1 => "\x1b[\\]P^_][0-9;a-z]{0,6}(\x07|\x1b\\\\|\x18|)".prop_map(String::into_bytes),
        2 => "\x1b[()][0B]|\x0e|\x0f|[jklmqx]{1,3}".prop_map(String::into_bytes),
        1 => "\x1b[ -~]{0,2}".prop_map(String::into_bytes),
        1 => "[漢é🦀\u{301}\t]{1,3}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..6),
    ];
    vec(sequence, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn a_screen_from_a_checkpoint_equals_one_from_byte_0(bytes in output(), cut in any::<prop::sample::Index>()) {
        let cut = cut.index(bytes.len() + 1) as u64;
        let whole = shown(&bytes, u64::MAX, None);
        let resumed = shown(&bytes, u64::MAX, shown(&bytes, cut, None).checkpoint);
        prop_assert_eq!(resumed.state(), whole.state());
        prop_assert_eq!(resumed.lines(), whole.lines());
        prop_assert_eq!((resumed.title, resumed.cursor, resumed.from), (whole.title, whole.cursor, 0));
    }
}
