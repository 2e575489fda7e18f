//! What is asked, before it is on any connection.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Method, Request, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::excerpt;
use crate::query::{part, query};
use crate::wire::ErrorBody;
use crate::{Address, ClientError, Problem};

/// One request, which can be sent more than once.
#[derive(Debug, Clone)]
pub(crate) struct ApiRequest {
    method: Method,
    /// Path and query.
    pub(crate) target: String,
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
        Self { method, target, body: Bytes::new(), headers: vec![], repeat }
    }

    pub(crate) fn query(mut self, fields: &impl Serialize) -> Self {
        self.target.push_str(&query(fields));
        self
    }

    pub(crate) fn json(self, value: &impl Serialize) -> Result<Self, ClientError> {
        let body = self.encode(value)?.into();
        Ok(Self { body, ..self }.header("content-type", "application/json"))
    }

    pub(crate) fn bytes(self, body: Bytes) -> Self {
        Self { body, ..self }.header("content-type", "application/octet-stream")
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// A part of the request as JSON.
    pub(crate) fn encode(&self, value: &impl Serialize) -> Result<String, ClientError> {
        let problem = |source| Problem::Json { text: "the request itself".into(), source };
        serde_json::to_string(value).map_err(|source| self.failed(problem(source)))
    }

    /// A part of the answer from JSON.
    pub(crate) fn decode<T: DeserializeOwned>(&self, json: &[u8]) -> Result<T, ClientError> {
        let problem = |source| Problem::Json { text: excerpt(json), source };
        serde_json::from_slice(json).map_err(|source| self.failed(problem(source)))
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
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        request.body(Full::new(self.body.clone())).map_err(|error| self.failed(error))
    }
}

/// The error in an answer that is no success: the server's own, if the body has one.
pub(crate) fn refusal(address: &Address, status: StatusCode, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<ErrorBody>(body) {
        Ok(body) => ClientError::Refused(body.error),
        Err(_) => ClientError::Foreign { address: address.clone(), status: Some(status) },
    }
}

/// `/v1/tokens/{id}`.
pub(crate) fn token_path(id: &str) -> String {
    format!("/v1/tokens/{}", part(id))
}

/// `/v1/nodes/{node}`, and something below it.
pub(crate) fn node_path(node: &str, below: &str) -> String {
    format!("/v1/nodes/{}{below}", part(node))
}

/// `/v1/processes/{id}`, and something below it.
pub(crate) fn process_path(id: &str, below: &str) -> String {
    format!("/v1/processes/{}{below}", part(id))
}
