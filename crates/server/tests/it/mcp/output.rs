//! `read_output` and `search_output`: what was folded can be fetched.

use serde_json::json;

use super::client::{Told, call};
use crate::harness::Server;

/// The offset and length that an answer names.
fn fold(told: &Told) -> (u64, u64) {
    let text = told.text();
    let call = text.split("read_output {").nth(1).unwrap_or_else(|| panic!("{text}"));
    let number = |name: &str| {
        let digits = call.split(&format!("\"{name}\":")).nth(1).unwrap();
        let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap();
        digits[..end].parse().unwrap()
    };
    (number("offset"), number("length"))
}

#[tokio::test]
async fn a_fold_is_fetched_byte_by_byte() {
    let server = Server::start().await;
    let told = call(&server, "exec_command", json!({ "command": "seq 1 20000" })).await;
    let whole: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    assert!(told.text().len() <= 24_000);
    let (offset, length) = fold(&told);
    let (mut at, mut bytes) = (offset, String::new());
    while at < offset + length {
        let left = offset + length - at;
        let page = json!({ "process_id": told.id(), "offset": at, "length": left, "view": "raw" });
        let page = call(&server, "read_output", page).await;
        assert!(page.text().len() <= 24_000);
        assert!(page.blocks[0].contains("in utf-8"), "{page:?}");
        bytes.push_str(&page.blocks[1]);
        at += page.blocks[1].len() as u64;
    }
    let (start, end) = (offset as usize, (offset + length) as usize);
    assert_eq!(bytes, &whole[start..end]);
    let head = told.output();
    assert!(head.starts_with(&whole[..start]) && head.ends_with(&whole[end..]));
}

#[tokio::test]
async fn bytes_that_are_no_text_come_in_base64() {
    let server = Server::start().await;
    let told = call(&server, "exec_command", json!({ "command": r"printf 'a\377\000b'" })).await;
    let page = json!({ "process_id": told.id(), "view": "raw" });
    let page = call(&server, "read_output", page).await;
    assert!(page.blocks[0].ends_with("bytes 0..4 in base64, alone in the next block"), "{page:?}");
    assert_eq!(base64_simd::STANDARD.decode_to_vec(&page.blocks[1]).unwrap(), b"a\xFF\0b");
}

#[tokio::test]
async fn a_part_of_the_output_is_read_from_an_offset_or_from_the_end() {
    let server = Server::start().await;
    let id = call(&server, "exec_command", json!({ "command": "seq 1 9" })).await.id();
    let told =
        call(&server, "read_output", json!({ "session_id": id, "offset": 4, "length": 4 })).await;
    assert_eq!(told.output(), "3\n4\n");
    let told = call(&server, "read_output", json!({ "process_id": id, "offset": 14 })).await;
    assert_eq!(told.output(), "8\n9\n");
    let told = call(&server, "read_output", json!({ "process_id": id, "lines": 2 })).await;
    assert!(told.output().ends_with("]\n8\n9\n"), "{told:?}");
    let both = json!({ "process_id": id, "tail": 2, "offset": 0 });
    assert!(call(&server, "read_output", both).await.is_error);
}

#[tokio::test]
async fn a_search_shows_matches_with_their_offsets_and_context() {
    let server = Server::start().await;
    let id = call(&server, "exec_command", json!({ "command": "seq 1 100" })).await.id();
    let search = json!({ "process_id": id, "pattern": "^50$", "context": 1 });
    let told = call(&server, "search_output", search).await;
    assert_eq!(told.output(), "135-49\n138:50\n141-51\n--\n[1 matches; all output was searched]");
    let told = call(&server, "search_output", json!({ "process_id": id, "pattern": "(" })).await;
    assert!(told.is_error && told.text().contains("invalid regular expression"), "{told:?}");
}

#[tokio::test]
async fn a_search_that_finds_more_than_fits_says_where_to_go_on() {
    let server = Server::start().await;
    let id = call(&server, "exec_command", json!({ "command": "seq 1 5000" })).await.id();
    let search = json!({ "process_id": id, "pattern": "7", "max_output_tokens": 400 });
    let told = call(&server, "search_output", search).await;
    assert!(told.text().len() <= 1200, "{told:?}");
    let text = told.text();
    let next = text.split("more with offset ").nth(1).unwrap().trim_end_matches(']').to_owned();
    let search =
        json!({ "process_id": id, "pattern": "7", "offset": next, "max_output_tokens": 400 });
    let more = call(&server, "search_output", search).await.output();
    assert!(more.starts_with(&format!("{next}:")), "{more}");
}

#[tokio::test]
async fn the_screen_of_a_program_that_draws_one_is_shown() {
    let server = Server::start().await;
    let draw = r"printf 'gone\033[2J\033[2;3Hmenu'";
    let told = call(&server, "exec_command", json!({ "command": draw, "tty": true })).await;
    let screen = json!({ "process_id": told.id(), "view": "screen" });
    let told = call(&server, "read_output", screen).await;
    let want = "columns, cursor at row 2, column 7:\n\n  menu";
    assert!(told.text().ends_with(want), "{}", told.text());
}
