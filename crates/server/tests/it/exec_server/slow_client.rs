//! A client that does not read makes no process wait, and loses nothing.

use lastbyte_testkit::pattern_bytes;
use serde_json::json;

use super::fixture::{Fixture, bytes, check_numbers, until_event};

#[tokio::test(flavor = "multi_thread")]
async fn output_that_is_read_late_is_not_lost_and_holds_nobody_up() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    client.read_on(false);
    let size = 20_000_000;
    // It joins when everything is written, and then ends.
    let actions = format!("write-bytes {size} then hold");
    let request = client.request("process/start", fixture.start("p", &actions, json!({})));
    fixture.anchor.wait_for(1);
    let mut other = fixture.client().await;
    fixture.started(&mut other, "o", "print served").await;
    until_event(&mut other, "o", "closed").await;
    client.read_on(true);
    client.answer(request).await;
    drop(fixture.anchor);
    until_event(&mut client, "p", "closed").await;
    check_numbers(&client.got, "p");
    assert_eq!(bytes(&client.got, "p", "stdout"), pattern_bytes(0..size));
}
