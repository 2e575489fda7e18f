//! Links, the pages that come by them, and the keyboard that they hand over.

mod fixture;
mod hand_over;
mod keyboard;

use std::time::Duration;

use futures_util::future::join_all;
use lastbyte_server::listen::PageTimes;
use lastbyte_wire::TokenScope;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use fixture::{Attached, Pages};

const NOTHING: Value = Value::Null;

#[tokio::test]
async fn exactly_one_of_many_trades_of_a_link_gets_a_token() {
    let server = Pages::start().await;
    let link = server.link(&server.own(), json!({})).await;
    let trades = join_all((0..50).map(|_| server.trade(&link))).await;
    let count = |status: u16| trades.iter().filter(|answer| answer.status == status).count();
    // The loopback address is told to wait after 20 wrong ones.
    assert_eq!((count(200), count(410), count(429)), (1, 20, 29), "{trades:?}");
    let refused = trades.iter().find(|answer| answer.status == 410).unwrap();
    assert_eq!(refused.code(), "link_gone");
    let again = server.link(&server.own(), json!({})).await;
    assert_eq!(server.trade(&again).await.status, 200, "a right link is taken at once");
}

#[tokio::test]
async fn an_expired_link_and_one_that_never_existed_are_gone() {
    let server = Pages::start().await;
    let link = server.link(&server.own(), json!({ "expires_in_ms": 1 })).await;
    // Time is the subject here.
    sleep_until(Instant::now() + Duration::from_millis(5)).await;
    assert_eq!(server.trade(&link).await.status, 410);
    assert_eq!(server.trade("").await.status, 410);
    for wrong in [json!({ "once": true }), json!({ "expires_in_ms": 0 }), json!({ "x": 1 })] {
        let refused = server.send(&server.own(), "POST", "/v1/links", wrong).await;
        assert_eq!(refused.status, 400, "{refused:?}");
    }
}

#[tokio::test]
async fn a_page_has_the_scope_of_the_client_that_made_the_link() {
    let server = Pages::start().await;
    let (inside, outside) = (server.cat("a").await, server.cat("b").await);
    let session = server.created(TokenScope::Session { name: "a".into() });
    let page = server.page(&session, json!({})).await;
    let listed = server.send(&page, "GET", "/v1/processes", NOTHING).await.json();
    let ids: Vec<_> =
        listed["processes"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, [&json!(inside)]);
    let hidden = server.send(&session, "POST", "/v1/links", json!({ "process": outside })).await;
    assert_eq!(hidden.code(), "process_not_found");
    let reader = server.created(TokenScope::ReadOnly);
    let refused = json!({ "process": inside, "once": true });
    let refused = server.send(&reader, "POST", "/v1/links", refused).await;
    assert_eq!(refused.code(), "read_only_token");
}

#[tokio::test]
async fn a_page_ends_with_the_token_that_its_link_was_made_with() {
    let server = Pages::start().await;
    let made = server.created.create(TokenScope::All, None, None).unwrap();
    let page = server.page(&format!("Bearer {}", made.token), json!({})).await;
    let unused = server.link(&format!("Bearer {}", made.token), json!({})).await;
    assert_eq!(server.send(&page, "GET", "/v1", NOTHING).await.status, 200);
    server.created.revoke(&made.info.id).unwrap();
    assert_eq!(server.send(&page, "GET", "/v1", NOTHING).await.status, 401);
    assert_eq!(server.trade(&unused).await.status, 410);
}

#[tokio::test]
async fn a_ticket_opens_one_websocket_within_the_scope_of_its_token() {
    let server = Pages::start().await;
    let (own, other) = (server.cat("a").await, server.cat("a").await);
    let page = server.page(&server.own(), json!({ "process": own })).await;
    let ticket = server.ticket(&page).await;
    let mut socket = server.attach(&own, &ticket).await.unwrap();
    assert_eq!(socket.words().await["kind"], "attached");
    assert_eq!(server.attach(&own, &ticket).await.unwrap_err(), 401, "it works once");
    let ticket = server.ticket(&page).await;
    assert_eq!(server.attach(&other, &ticket).await.unwrap_err(), 404, "of another process");
    assert_eq!(server.attach(&own, &ticket).await.unwrap_err(), 401, "it was used");
    assert_eq!(server.attach(&own, "none").await.unwrap_err(), 401);
    let ticket = server.ticket(&page).await;
    let elsewhere = format!("/v1/processes/{own}?ticket={ticket}");
    assert_eq!(server.send("", "GET", &elsewhere, NOTHING).await.status, 401, "only for attach");
}

#[tokio::test]
async fn pages_of_other_sites_and_other_host_names_are_refused_with_a_right_ticket() {
    let server = Pages::start().await;
    let own = server.cat("a").await;
    let page = server.page(&server.own(), json!({ "process": own })).await;
    let host = server.address.to_string();
    let attempts = [
        (host.as_str(), "http://example.com", 403),
        (host.as_str(), "null", 403),
        ("rebound.example", "http://rebound.example", 421),
    ];
    for (host, origin, status) in attempts {
        let ticket = server.ticket(&page).await;
        let query = format!("ticket={ticket}");
        let refused = Attached::open(&server, &own, &query, (host, Some(origin))).await;
        assert_eq!(refused.unwrap_err(), status, "{host} {origin}");
        let origin = format!("http://{}", server.address);
        let right = (server.address.to_string(), origin);
        let right = Attached::open(&server, &own, &query, (&right.0, Some(&right.1))).await;
        assert!(right.is_ok(), "a refused request does not use the ticket up");
    }
    let fields = [("host", "rebound.example"), ("origin", "http://rebound.example")];
    let link = server.link(&server.own(), json!({})).await;
    let body = json!({ "link": link });
    let refused = server.send_with("POST", "/v1/links/trade", body, &fields).await;
    assert_eq!(refused.status, 421, "nor is a link traded");
    assert_eq!(server.trade(&link).await.status, 200);
}

#[tokio::test]
async fn a_page_that_is_not_used_ends_and_one_in_use_does_not() {
    let short = Duration::from_millis(200);
    let server = Pages::with(PageTimes { unused: short, ..PageTimes::default() }).await;
    let own = server.cat("a").await;
    let (left, used) =
        (server.page(&server.own(), json!({})).await, server.page(&server.own(), json!({})).await);
    let mut socket = server.attach(&own, &server.ticket(&used).await).await.unwrap();
    assert_eq!(socket.words().await["kind"], "attached");
    server
        .until(async || server.send(&left, "GET", "/v1", NOTHING).await.status == 401, short)
        .await;
    assert_eq!(server.send(&used, "GET", "/v1", NOTHING).await.status, 200, "its socket is open");
    drop(socket);
    server
        .until(async || server.send(&used, "GET", "/v1", NOTHING).await.status == 401, short)
        .await;
}

#[tokio::test]
async fn a_server_without_a_port_opens_one_for_as_long_as_there_are_pages() {
    let short = Duration::from_millis(300);
    let times = PageTimes { port: short, ..PageTimes::default() };
    let server = Pages::without_port(times).await;
    let own = server.cat("a").await;
    let url = server.create_link("", json!({ "process": own })).await;
    let address: std::net::SocketAddr =
        url.strip_prefix("http://").unwrap().split('/').next().unwrap().parse().unwrap();
    assert!(address.ip().is_loopback() && address.port() != 0, "{url}");
    let server = Pages { address, ..server };
    let no_token = [("x", "over the port")];
    let refused = server.send_with("GET", "/v1/processes", NOTHING, &no_token).await;
    assert_eq!(refused.status, 401);
    let link = url.split_once("#link=").unwrap().1;
    let traded = server.trade(link).await.json();
    let page = format!("Bearer {}", traded["token"].as_str().unwrap());
    let mut attached = server.attach(&own, &server.ticket(&page).await).await.unwrap();
    assert_eq!(attached.words().await["kind"], "attached");
    drop(attached);
    let is_closed = async || tokio::net::TcpStream::connect(address).await.is_err();
    server.until(is_closed, short).await;
    let url = server.create_link("", json!({})).await;
    assert!(url.starts_with(&format!("http://{address}/")), "the same port again: {url}");
    assert_eq!(
        server.send(&page, "GET", "/v1", NOTHING).await.status,
        401,
        "another program may have had the port, and got the token"
    );
}
