//! One operation: what it takes and what it answers.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::refusals::{self, OF_A_BODY};
use crate::ErrorCode;

/// Makes the schema of a type with a generator.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

#[derive(Debug)]
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    id: &'static str,
    summary: &'static str,
    query: Option<SchemaOf>,
    /// Fields of the head, and what each is for.
    head: &'static [(&'static str, &'static str)],
    body: Option<Body>,
    answers: Vec<(u16, Content)>,
    answer_heads: Vec<(u16, &'static [Field])>,
    refusals: Vec<ErrorCode>,
    access: Access,
}

/// What a request has behind its head.
#[derive(Debug, Clone, Copy)]
struct Body {
    kind: &'static str,
    schema: SchemaOf,
    required: bool,
}

/// A field in the head of an answer: its name, its type, and what it tells.
pub(super) type Field = (&'static str, &'static str, &'static str);

/// Whom it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// As the document says for all.
    Usual,
    /// Every client that can reach the server.
    Anybody,
}

/// What an answer has behind its head.
#[derive(Debug, Clone, Copy)]
enum Content {
    Json(SchemaOf),
    /// What no schema describes.
    Other(&'static str),
    Nothing,
}

impl Operation {
    pub(super) fn get(path: &'static str, id: &'static str, summary: &'static str) -> Self {
        Self::new("get", path, id, summary)
    }

    pub(super) fn post(path: &'static str, id: &'static str, summary: &'static str) -> Self {
        Self::new("post", path, id, summary)
    }

    pub(super) fn delete(path: &'static str, id: &'static str, summary: &'static str) -> Self {
        Self::new("delete", path, id, summary)
    }

    fn new(
        method: &'static str,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
    ) -> Self {
        Self {
            method,
            path,
            id,
            summary,
            query: None,
            head: &[],
            body: None,
            answers: Vec::new(),
            answer_heads: Vec::new(),
            refusals: if path.contains("{id}") { vec![ErrorCode::ProcessNotFound] } else { vec![] },
            access: Access::Usual,
        }
    }

    pub(super) fn for_anybody(self) -> Self {
        Self { access: Access::Anybody, ..self }
    }

    /// What it can be refused for, besides what anything can.
    pub(super) fn refused(mut self, codes: &[ErrorCode]) -> Self {
        self.refusals.extend(codes);
        self
    }

    /// Fields of the head that it heeds.
    pub(super) fn head(self, head: &'static [(&'static str, &'static str)]) -> Self {
        Self { head, ..self }
    }

    pub(super) fn query<T: JsonSchema>(self) -> Self {
        // Written out where it is used, not referred to: its fields become parameters.
        Self { query: Some(T::json_schema), ..self }
    }

    pub(super) fn body<T: JsonSchema>(self) -> Self {
        self.with_body("application/json", SchemaGenerator::subschema_for::<T>, true)
    }

    /// A body that may as well be empty.
    pub(super) fn optional_body<T: JsonSchema>(self) -> Self {
        self.with_body("application/json", SchemaGenerator::subschema_for::<T>, false)
    }

    /// A body that is any bytes.
    pub(super) fn bytes(self) -> Self {
        self.with_body("application/octet-stream", |_| Schema::default(), false)
    }

    fn with_body(self, kind: &'static str, schema: SchemaOf, required: bool) -> Self {
        Self { body: Some(Body { kind, schema, required }), ..self }.refused(&OF_A_BODY)
    }

    pub(super) fn json<T: JsonSchema>(mut self, status: u16) -> Self {
        self.answers.push((status, Content::Json(SchemaGenerator::subschema_for::<T>)));
        self
    }

    pub(super) fn content(mut self, status: u16, kind: &'static str) -> Self {
        self.answers.push((status, Content::Other(kind)));
        self
    }

    pub(super) fn empty(mut self, status: u16) -> Self {
        self.answers.push((status, Content::Nothing));
        self
    }

    /// Fields that the head of an answer with this status can have.
    pub(super) fn answer_head(mut self, status: u16, fields: &'static [Field]) -> Self {
        self.answer_heads.push((status, fields));
        self
    }

    pub(super) fn document(&self, schemas: &mut SchemaGenerator) -> Value {
        let mut document = json!({
            "operationId": self.id,
            "summary": self.summary,
            "parameters": self.parameters(schemas),
            "responses": self.responses(schemas),
        });
        if let Some(Body { kind, schema, required }) = self.body {
            let content = json!({ kind: { "schema": schema(schemas) } });
            document["requestBody"] = json!({ "content": content, "required": required });
        }
        if self.access == Access::Anybody {
            document["security"] = json!([]);
        }
        document
    }

    fn parameters(&self, schemas: &mut SchemaGenerator) -> Vec<Value> {
        let mut parameters = Vec::new();
        if self.path.contains("{id}") {
            let schema = json!({ "type": "string", "format": "uuid" });
            parameters
                .push(json!({ "name": "id", "in": "path", "required": true, "schema": schema }));
        }
        let query = self.query.map(|of| of(schemas).to_value()).unwrap_or_default();
        let required = query["required"].as_array().cloned().unwrap_or_default();
        for (name, schema) in query["properties"].as_object().into_iter().flatten() {
            let required = required.iter().any(|required| required == name);
            let schema = without_null(schema.clone());
            parameters.push(
                json!({ "name": name, "in": "query", "required": required, "schema": schema }),
            );
        }
        parameters.extend(self.head.iter().map(|(name, description)| {
            let schema = json!({ "type": "string" });
            json!({ "name": name, "in": "header", "description": description, "schema": schema })
        }));
        parameters
    }

    fn responses(&self, schemas: &mut SchemaGenerator) -> Map<String, Value> {
        let mut responses = refusals::answers(&self.refusals);
        if self.access == Access::Anybody {
            responses.remove(&ErrorCode::Unauthorized.http_status().to_string());
        }
        for (status, content) in &self.answers {
            let response = responses.entry(status.to_string()).or_insert_with(|| json!({}));
            response["description"] = json!(self.summary);
            match content {
                Content::Json(schema) => {
                    response["content"]["application/json"]["schema"] = schema(schemas).to_value();
                }
                Content::Other(kind) => response["content"][*kind] = json!({}),
                Content::Nothing => {}
            }
        }
        for (status, fields) in &self.answer_heads {
            responses[&status.to_string()]["headers"] = fields.iter().map(field).collect();
        }
        responses
    }
}

fn field((name, kind, description): &Field) -> (String, Value) {
    let schema = json!({ "type": kind });
    ((*name).to_owned(), json!({ "description": description, "schema": schema }))
}

/// A query has no null: what is not said is absent.
fn without_null(mut schema: Value) -> Value {
    if let Some(kind) = before(&schema["type"], &json!("null")) {
        schema["type"] = kind;
    }
    if let Some(reference) = before(&schema["anyOf"], &json!({ "type": "null" }))
        && let Some(members) = schema.as_object_mut()
    {
        members.remove("anyOf");
        members.insert("$ref".into(), reference["$ref"].clone());
    }
    schema
}

/// The one before `last` in a list of two.
fn before(list: &Value, last: &Value) -> Option<Value> {
    match list.as_array()?.as_slice() {
        [first, second] if second == last => Some(first.clone()),
        _ => None,
    }
}
