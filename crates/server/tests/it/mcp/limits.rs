//! What an answer may cost, and what a call may take.

use serde_json::json;

use super::client::call;
use crate::harness::Server;

#[tokio::test]
async fn every_answer_is_within_its_budget() {
    let server = Server::start().await;
    let long = "echo \"$(head -c 3000 /dev/zero | tr '\\0' x)\"; head -c 2000000 /dev/urandom";
    for nth in 0..5 {
        let name = format!("name-{nth}-{}", "n".repeat(50));
        let started =
            json!({ "command": format!("{long} # {nth}"), "name": name, "max_output_tokens": 400 });
        let told = call(&server, "exec_command", started).await;
        assert!(told.text().len() <= 1200, "{}", told.text().len());
        let read = json!({ "process_id": told.id(), "view": "raw", "max_output_tokens": 400 });
        let read = call(&server, "read_output", read).await;
        assert!(read.text().len() <= 1200, "{}", read.text().len());
        let search = json!({ "process_id": told.id(), "pattern": ".", "max_output_tokens": 400 });
        let found = call(&server, "search_output", search).await;
        assert!(found.text().len() <= 1200, "{}", found.text().len());
    }
    let told = call(&server, "list_processes", json!({ "max_output_tokens": 400 })).await;
    assert!(told.text().len() <= 1200 && told.text().contains("more, which are not shown"));
}
