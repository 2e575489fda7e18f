//! One operation: what it takes and what it answers.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// The schema of a type, once there is somebody to keep it.
type Of = fn(&mut SchemaGenerator) -> Schema;

#[derive(Debug)]
pub(super) struct Operation {
    id: &'static str,
    summary: &'static str,
    query: Option<Of>,
    body: Option<(&'static str, Of)>,
    answers: Vec<(u16, Content)>,
}

/// What an answer has behind its head.
#[derive(Debug, Clone, Copy)]
enum Content {
    Json(Of),
    /// What no schema describes.
    Other(&'static str),
    Nothing,
}

impl Operation {
    pub(super) fn new(id: &'static str, summary: &'static str) -> Self {
        Self { id, summary, query: None, body: None, answers: Vec::new() }
    }

    pub(super) fn query<T: JsonSchema>(self) -> Self {
        // Written out where it is used, not referred to: its fields become parameters.
        Self { query: Some(T::json_schema), ..self }
    }

    pub(super) fn body<T: JsonSchema>(self) -> Self {
        Self { body: Some(("application/json", SchemaGenerator::subschema_for::<T>)), ..self }
    }

    /// A body that is any bytes.
    pub(super) fn bytes(self) -> Self {
        Self { body: Some(("application/octet-stream", |_| Schema::default())), ..self }
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

    pub(super) fn document(&self, path: &str, schemas: &mut SchemaGenerator) -> Value {
        let mut document = json!({
            "operationId": self.id,
            "summary": self.summary,
            "parameters": self.parameters(path, schemas),
            "responses": self.responses(schemas),
        });
        if let Some((kind, schema)) = self.body {
            document["requestBody"] = json!({ "content": { kind: { "schema": schema(schemas) } } });
        }
        document
    }

    fn parameters(&self, path: &str, schemas: &mut SchemaGenerator) -> Vec<Value> {
        let mut parameters = Vec::new();
        if path.contains("{id}") {
            let schema = json!({ "type": "string" });
            parameters
                .push(json!({ "name": "id", "in": "path", "required": true, "schema": schema }));
        }
        let query = self.query.map(|of| of(schemas).to_value()).unwrap_or_default();
        let required = query["required"].as_array().cloned().unwrap_or_default();
        for (name, schema) in query["properties"].as_object().into_iter().flatten() {
            let required = required.iter().any(|required| required == name);
            parameters.push(
                json!({ "name": name, "in": "query", "required": required, "schema": schema }),
            );
        }
        parameters
    }

    fn responses(&self, schemas: &mut SchemaGenerator) -> Value {
        let error = json!({ "$ref": "#/components/schemas/ErrorBody" });
        let mut responses = json!({
            "default": {
                "description": "An error",
                "content": { "application/json": { "schema": error } },
            },
        });
        for (status, content) in &self.answers {
            let response = &mut responses[status.to_string()];
            response["description"] = json!(self.summary);
            match content {
                Content::Json(schema) => {
                    response["content"]["application/json"]["schema"] = schema(schemas).to_value();
                }
                Content::Other(kind) => response["content"][*kind] = json!({}),
                Content::Nothing => {}
            }
        }
        responses
    }
}
