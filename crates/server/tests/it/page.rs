//! The files of the page.

use hyper::body::Bytes;
use lastbyte_server::doors::page;

use crate::harness::{Answer, Server};

#[tokio::test]
async fn every_file_comes_with_its_type_its_policy_and_a_tag_that_spares_the_next_answer() {
    let server = Server::start().await;
    for path in page::offered() {
        let answer = server.connect().await.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        let field = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
        let kind = match path.rsplit('.').next().unwrap() {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        };
        assert_eq!(field("content-type"), kind, "{path}");
        let policy = field("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
        assert!(
            policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(field("x-content-type-options"), "nosniff");
        assert_eq!(field("referrer-policy"), "no-referrer");
        assert_eq!(field("cross-origin-opener-policy"), "same-origin");
        let (tag, nothing) = (field("etag"), Bytes::new());
        let again = server
            .connect()
            .await
            .begin_with("GET", path, &[("if-none-match", &tag)], nothing)
            .await;
        let again = Answer::whole(again).await;
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
    }
}

#[tokio::test]
async fn the_page_has_no_inline_script_or_style_and_names_no_other_host() {
    let server = Server::start().await;
    let answer = server.connect().await.get("/").await;
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    for forbidden in ["<style", "style=", "<script>", "onclick", "http:", "https:", "//"] {
        assert!(!text.contains(forbidden), "{forbidden}");
    }
}
