//! One route: what it is asked by, where it is, and who answers.

use axum::handler::Handler;
use axum::routing::{self, MethodRouter};

use crate::App;

/// Made with its handler, so that the method it is known by is the one it answers to.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) answers: MethodRouter<App>,
}

impl Route {
    pub(super) fn get<T: 'static>(path: &'static str, handler: impl Handler<T, App>) -> Self {
        Self { method: "GET", path, answers: routing::get(handler) }
    }

    pub(super) fn post<T: 'static>(path: &'static str, handler: impl Handler<T, App>) -> Self {
        Self { method: "POST", path, answers: routing::post(handler) }
    }

    pub(super) fn delete<T: 'static>(path: &'static str, handler: impl Handler<T, App>) -> Self {
        Self { method: "DELETE", path, answers: routing::delete(handler) }
    }
}
