//! Every door that is served on one address.

use axum::Router;

use super::{coder, http};
use crate::App;

/// The native door, and the one for clients of Coder's agent in front of it.
pub fn router(app: App) -> Router {
    coder::router(app.clone()).merge(http::router(app))
}
