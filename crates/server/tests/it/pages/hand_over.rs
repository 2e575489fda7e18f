//! A person types what an agent must not see.

use std::time::Duration;

use lastbyte_server::listen::PageTimes;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::fixture::Pages;

const PASSWORD: &str = "correct horse battery";

/// A shell on a terminal that runs this.
fn on_terminal(shell: &str) -> Value {
    json!({ "shell": shell, "tty": { "rows": 24, "cols": 80 }, "stdin": "open" })
}

#[tokio::test]
async fn an_agent_waits_while_a_person_types_a_password_that_it_never_sees() {
    let server = Pages::start().await;
    let prompt =
        "printf 'Password: '; read -rs word; echo; echo \"${#word} characters\"; read -r _";
    let id =
        server.run(on_terminal(&format!("exec bash -c '{}'", prompt.replace('\'', "'\\''")))).await;
    let own = server.own();
    let path = format!("/v1/processes/{id}/wait");
    let asks = server.send(&own, "POST", &path, json!({ "needs_input": true })).await.json();
    assert_eq!(asks["wait"]["secret"], true, "{asks}");
    let link = server.link(&own, json!({ "process": id, "once": true })).await;
    let waiting =
        server.send(&own, "POST", &path, json!({ "hand_over": true, "timeout_ms": 60_000 }));
    let person = async {
        let traded = server.trade(&link).await.json();
        assert_eq!((&traded["hand_over"], &traded["process"]), (&json!(true), &json!(id)));
        let page = format!("Bearer {}", traded["token"].as_str().unwrap());
        let mut viewer = server.attach(&id, &server.ticket(&own).await).await.unwrap();
        let mut socket = server.attach(&id, &server.ticket(&page).await).await.unwrap();
        assert_eq!(socket.words().await["kind"], "attached");
        socket.say(json!({ "kind": "take_keyboard", "name": "Anna" })).await;
        assert_eq!(socket.words().await["yours"], true);
        socket.say(json!({ "kind": "secret_input", "on": true })).await;
        assert_eq!(socket.words().await["keyboard"]["secret"], true);
        let shown =
            server.send(&own, "GET", &format!("/v1/processes/{id}"), Value::Null).await.json();
        assert_eq!(shown["keyboard"]["holder"], "Anna", "{shown}");
        socket.type_text(&format!("{PASSWORD}\n")).await;
        let seen = viewer.until_output(&format!("{} characters", PASSWORD.len())).await;
        assert!(!seen.contains("horse"), "{seen}");
        socket.say(json!({ "kind": "give_back_keyboard" })).await;
        socket.until_over().await;
        page
    };
    let (waited, page) = tokio::join!(waiting, person);
    assert_eq!(waited.json()["wait"], json!({ "met": "hand_over", "how": "done" }));
    assert!(!server.output(&id).await.contains("horse"));
    assert_eq!(
        server.send(&page, "GET", "/v1", Value::Null).await.status,
        401,
        "the token has ended"
    );
    assert_eq!(server.trade(&link).await.status, 410);
    let again = server.send(&own, "POST", &path, json!({ "hand_over": true })).await.json();
    assert_eq!(again["wait"]["how"], "done", "the answer stays the same");
    let free = server.send(&own, "GET", &format!("/v1/processes/{id}"), Value::Null).await.json();
    assert_eq!(free.get("keyboard"), None);
}

#[tokio::test]
async fn a_secret_is_not_shown_by_a_terminal_that_shows_what_is_typed() {
    let server = Pages::start().await;
    let id =
        server.run(on_terminal("read -r word; echo got ${#word}; read -r next; echo $next")).await;
    let own = server.own();
    let mut socket = server.attach(&id, &server.ticket(&own).await).await.unwrap();
    assert_eq!(socket.words().await["kind"], "attached");
    socket.say(json!({ "kind": "secret_input", "on": true })).await;
    assert_eq!(socket.words().await["error"]["code"], "keyboard_not_yours");
    socket.say(json!({ "kind": "take_keyboard" })).await;
    assert_eq!(socket.words().await["keyboard"]["holder"], "a client");
    socket.say(json!({ "kind": "secret_input", "on": true })).await;
    assert_eq!(socket.words().await["keyboard"]["secret"], true);
    socket.type_text("pass").await;
    socket.type_text("word\n").await;
    socket.say(json!({ "kind": "secret_input", "on": false })).await;
    let seen = socket.until_output("got 8").await;
    assert!(!seen.contains("pass") && !seen.contains("word"), "{seen}");
    // The terminal shows again what is typed, sooner or later: by then the secret was read.
    let mut typed = String::new();
    while !typed.contains('x') {
        socket.type_text("x").await;
        sleep_until(Instant::now() + Duration::from_millis(20)).await;
        typed = server.output(&id).await.split_once("got 8").unwrap().1.to_owned();
    }
    assert!(!server.output(&id).await.contains("pass"));
}

#[tokio::test]
async fn a_secret_that_was_typed_in_part_is_shown_to_nobody() {
    let server = Pages::start().await;
    let reads = "read -r word; read -r _; echo got ${#word}; read -r next; echo $next";
    let id = server.run(on_terminal(reads)).await;
    let own = server.own();
    let mut person = server.attach(&id, &server.ticket(&own).await).await.unwrap();
    assert_eq!(person.words().await["kind"], "attached");
    person.say(json!({ "kind": "take_keyboard" })).await;
    person.words().await;
    person.say(json!({ "kind": "secret_input", "on": true })).await;
    assert_eq!(person.words().await["keyboard"]["secret"], true);
    person.type_text("half").await;
    drop(person);
    let mut agent = server.attach(&id, &server.ticket(&own).await).await.unwrap();
    while agent.words().await["kind"] != "attached" {}
    // The next one to type asks the terminal to show the line (^R), also after a quoted newline (^V).
    agent.type_text("\u{16}").await;
    agent.type_text("\n").await;
    for _ in 0..30 {
        agent.type_text("\u{12}").await;
        // Time is the subject here: so long the terminal does not show again what is typed.
        sleep_until(Instant::now() + Duration::from_millis(10)).await;
    }
    agent.type_text("\n").await;
    let seen = agent.until_output("got 4").await;
    assert!(!seen.contains("half"), "{seen}");
    let mut typed = String::new();
    while !typed.contains('x') {
        agent.type_text("x").await;
        sleep_until(Instant::now() + Duration::from_millis(20)).await;
        typed = server.output(&id).await.split_once("got 4").unwrap().1.to_owned();
    }
    assert!(!server.output(&id).await.contains("half"));
}

#[tokio::test]
async fn a_hand_over_needs_a_terminal_that_somebody_can_type_into() {
    let server = Pages::start().await;
    let own = server.own();
    let closed = json!({ "command": ["sleep", "600"], "tty": { "rows": 24, "cols": 80 } });
    let ended = server.run(on_terminal("exec true")).await;
    let path = format!("/v1/processes/{ended}/wait");
    server.send(&own, "POST", &path, json!({ "exit": true })).await;
    for (id, code) in [
        (server.cat("a").await, "no_terminal"),
        (server.run(closed).await, "stdin_not_open"),
        (ended, "process_exited"),
    ] {
        let asked = json!({ "process": id, "once": true });
        let refused = server.send(&own, "POST", "/v1/links", asked).await;
        assert_eq!((refused.status, refused.code().as_str()), (409, code), "{refused:?}");
        let shows = server.send(&own, "POST", "/v1/links", json!({ "process": id })).await;
        assert_eq!(shows.status, 201, "a page can show it: {shows:?}");
    }
}

#[tokio::test]
async fn a_person_is_done_also_if_another_client_has_the_keyboard() {
    let server = Pages::start().await;
    let (id, own) = (server.run(on_terminal("exec cat")).await, server.own());
    let mut agent = server.attach(&id, &server.ticket(&own).await).await.unwrap();
    assert_eq!(agent.words().await["kind"], "attached");
    agent.say(json!({ "kind": "take_keyboard", "name": "an agent" })).await;
    assert_eq!(agent.words().await["yours"], true);
    let page = server.page(&own, json!({ "process": id, "once": true })).await;
    let mut person = server.attach(&id, &server.ticket(&page).await).await.unwrap();
    assert_eq!(person.words().await["kind"], "attached");
    person.say(json!({ "kind": "give_back_keyboard" })).await;
    person.until_over().await;
    let path = format!("/v1/processes/{id}/wait");
    let waited = server.send(&own, "POST", &path, json!({ "hand_over": true })).await.json();
    assert_eq!(waited["wait"]["how"], "done", "{waited}");
    let shown = server.send(&own, "GET", &format!("/v1/processes/{id}"), Value::Null).await.json();
    assert_eq!(shown["keyboard"]["holder"], "an agent", "{shown}");
}

#[tokio::test]
async fn a_person_who_leaves_ends_the_hand_over() {
    let left = Duration::from_millis(200);
    let server = Pages::with(PageTimes { left, ..PageTimes::default() }).await;
    let (id, own) = (server.run(on_terminal("exec cat")).await, server.own());
    let page = server.page(&own, json!({ "process": id, "once": true })).await;
    let mut socket = server.attach(&id, &server.ticket(&page).await).await.unwrap();
    assert_eq!(socket.words().await["kind"], "attached");
    socket.say(json!({ "kind": "take_keyboard" })).await;
    assert_eq!(socket.words().await["keyboard"]["holder"], "a person");
    let path = format!("/v1/processes/{id}/wait");
    let wait =
        |ms: u64| server.send(&own, "POST", &path, json!({ "hand_over": true, "timeout_ms": ms }));
    // Longer than one who has left is waited for.
    assert_eq!(wait(600).await.json()["wait"]["met"], "timeout", "an open connection is in use");
    drop(socket);
    assert_eq!(wait(60_000).await.json()["wait"]["how"], "left");
    let written =
        server.send(&own, "POST", &format!("/v1/processes/{id}/stdin"), Value::Null).await;
    assert_eq!(written.status, 200, "the keyboard is free");
    server.link(&own, json!({ "process": id, "once": true, "expires_in_ms": 50 })).await;
    assert_eq!(wait(60_000).await.json()["wait"]["how"], "expired");
}
