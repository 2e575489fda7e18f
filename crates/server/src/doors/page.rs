//! The page for people, at `/`: static files that use the native API like any other client.
//!
//! The files are the same for everybody and need no token; what they show does. They are in the program,
//! load nothing from elsewhere, and run under a policy that lets nothing else in.

mod files;

use std::sync::LazyLock;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing;
use sha2::{Digest, Sha256};

use files::{FILES, File};

/// No inline scripts or styles, nothing from elsewhere, in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// What every file is answered with.
const HEAD: [(&str, &str); 7] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-embedder-policy", "require-corp"),
    // Kept, and asked about again each time.
    ("cache-control", "no-cache"),
];

/// The tag of each file, in their order.
static TAGS: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| FILES.iter().map(tag).collect());

/// The paths of the files.
pub fn offered() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|file| file.path)
}

/// Whether this is the path of a file of the page.
pub(crate) fn has(path: &str) -> bool {
    offered().any(|known| known == path)
}

/// Whether this is the path of the page itself.
pub(crate) fn is_document(path: &str) -> bool {
    path == "/"
}

/// The files, each at its path.
pub fn router() -> Router {
    let add = |router: Router, (at, file): (usize, &'static File)| {
        let serve = move |request: Request| async move { serve(at, file, request.headers()) };
        router.route(file.path, routing::get(serve))
    };
    FILES.iter().enumerate().fold(Router::new(), add)
}

fn serve(at: usize, file: &'static File, asked: &HeaderMap) -> Response<Body> {
    let tag = &TAGS[at];
    let is_known = asked.get_all(header::IF_NONE_MATCH).iter().any(|known| has_tag(known, tag));
    let mut answer = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, file.kind)], file.contents).into_response()
    };
    let fields = answer.headers_mut();
    fields.insert(header::ETAG, tag.clone());
    for (name, value) in HEAD {
        fields.insert(name, HeaderValue::from_static(value));
    }
    answer
}

fn has_tag(list: &HeaderValue, tag: &HeaderValue) -> bool {
    let tags = list.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let weak = |known: &[u8]| known.strip_prefix(b"W/").unwrap_or(known) == tag.as_bytes();
    tags.into_iter().any(|known| known == b"*" || weak(known))
}

fn tag(file: &File) -> HeaderValue {
    let hash = Sha256::digest(file.contents);
    let hex: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&format!("\"{hex}\"")).expect("digits and quotes")
}
