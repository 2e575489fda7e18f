//! One route: what it is asked by, where it is, and who answers.

use axum::handler::Handler;
use axum::routing::{self, MethodRouter};

use crate::App;
use crate::metrics::Promptness;

/// Made with its handler, so that the method it is known by is the one it answers to.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) answers: MethodRouter<App>,
    pub(super) promptness: Promptness,
}

impl Route {
    pub(super) fn get<T: 'static>(path: &'static str, handler: impl Handler<T, App>) -> Self {
        Self::new("GET", path, routing::get(handler))
    }

    pub(super) fn post<T: 'static>(path: &'static str, handler: impl Handler<T, App>) -> Self {
        Self::new("POST", path, routing::post(handler))
    }

    pub(super) fn delete<T: 'static>(path: &'static str, handler: impl Handler<T, App>) -> Self {
        Self::new("DELETE", path, routing::delete(handler))
    }

    /// As a route that is there to wait for processes.
    pub(super) fn that_waits(self) -> Self {
        Self { promptness: Promptness::Waits, ..self }
    }

    fn new(method: &'static str, path: &'static str, answers: MethodRouter<App>) -> Self {
        Self { method, path, answers, promptness: Promptness::Prompt }
    }
}
