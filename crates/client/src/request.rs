//! What is asked, before it is on any connection.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use serde::Serialize;

use crate::query::{part, query};
use crate::{Address, ClientError, Problem};

/// One request, which can be sent more than once.
#[derive(Debug, Clone)]
pub(crate) struct ApiRequest {
    method: Method,
    /// Path and query.
    target: String,
    content_type: Option<&'static str>,
    body: Bytes,
    headers: Vec<(&'static str, String)>,
    pub(crate) repeat: Retry,
}

/// Whether carrying it out twice is the same as once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    Safe,
    /// Sent once: whether it was carried out is for the caller to find out.
    Unsafe,
}

impl ApiRequest {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path.into(), Retry::Safe)
    }

    pub(crate) fn post(path: impl Into<String>, repeat: Retry) -> Self {
        Self::new(Method::POST, path.into(), repeat)
    }

    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path.into(), Retry::Unsafe)
    }

    fn new(method: Method, target: String, repeat: Retry) -> Self {
        Self { method, target, content_type: None, body: Bytes::new(), headers: vec![], repeat }
    }

    pub(crate) fn query(mut self, fields: &impl Serialize) -> Self {
        self.target.push_str(&query(fields));
        self
    }

    pub(crate) fn json(mut self, value: &impl Serialize) -> Result<Self, ClientError> {
        let json = serde_json::to_vec(value).map_err(|source| {
            self.failed(Problem::Json { text: "the request itself".into(), source })
        })?;
        self.content_type = Some("application/json");
        self.body = json.into();
        Ok(self)
    }

    pub(crate) fn bytes(mut self, bytes: Bytes) -> Self {
        self.content_type = Some("application/octet-stream");
        self.body = bytes;
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn failed(&self, source: impl Into<Problem>) -> ClientError {
        let asked = format!("{} {}", self.method, self.target);
        ClientError::Protocol { asked, source: source.into() }
    }

    pub(crate) fn request(&self, address: &Address) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request =
            Request::builder().method(&self.method).uri(&self.target).header(HOST, "localhost");
        if let Some(token) = address.token() {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(content_type) = self.content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        request.body(Full::new(self.body.clone())).map_err(|error| self.failed(error))
    }
}

/// `/v1/processes/{id}`, and something below it.
pub(crate) fn process_path(id: &str, below: &str) -> String {
    format!("/v1/processes/{}{below}", part(id))
}
