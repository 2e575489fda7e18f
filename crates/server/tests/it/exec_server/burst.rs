//! Many starts at once.

use serde_json::json;

use super::fixture::{Fixture, bytes, check_numbers, until_event};

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_starts_that_are_sent_at_once_are_all_served() {
    let fixture = Fixture::new();
    let mut client = fixture.client().await;
    let requests: Vec<(String, i64)> = (0..1000)
        .map(|number| {
            let id = format!("p{number}");
            let mut params = fixture.start(&id, "print x", json!({}));
            params["argv"] = json!(["/bin/sh", "-c", format!("echo {number}; echo e >&2")]);
            let request = client.request("process/start", params);
            (id, request)
        })
        .collect();
    for (id, request) in &requests {
        let answer = client.answer(*request).await;
        assert_eq!(answer["result"]["processId"], **id, "{answer}");
        until_event(&mut client, id, "closed").await;
    }
    let mut by_process = std::collections::HashMap::<String, Vec<serde_json::Value>>::new();
    for message in &client.got {
        let id = message["params"]["processId"].as_str().unwrap_or_default();
        by_process.entry(id.to_owned()).or_default().push(message.clone());
    }
    for (number, (id, _)) in requests.iter().enumerate() {
        let got = &by_process[id];
        check_numbers(got, id);
        assert_eq!(bytes(got, id, "stdout"), format!("{number}\n").into_bytes());
        assert_eq!(bytes(got, id, "stderr"), b"e\n");
    }
}
