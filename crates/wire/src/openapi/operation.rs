//! One operation: what it takes and what it answers.

use std::cell::RefCell;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use super::refusals::{self, OF_A_BODY, OF_ALL};
use crate::ErrorCode;

/// An operation in the words of OpenAPI, still without its refusals.
#[derive(Debug)]
pub(super) struct Operation<'a> {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    schemas: &'a RefCell<SchemaGenerator>,
    document: Value,
    refusals: Vec<ErrorCode>,
}

/// A field in the head of an answer: its name, its type, and what it tells.
pub(super) type Field = (&'static str, &'static str, &'static str);

const ID: &str = "An id, a name, `last` for the newest process, or a unique prefix or suffix of an id of at \
                  least 4 characters.";

impl<'a> Operation<'a> {
    pub(super) fn new(
        schemas: &'a RefCell<SchemaGenerator>,
        method: &'static str,
        path: &'static str,
        id: &str,
        summary: &str,
    ) -> Self {
        let document = json!({ "operationId": id, "summary": summary, "parameters": [] });
        let mut own = Self { method, path, schemas, document, refusals: OF_ALL.to_vec() };
        if path.contains("{id}") {
            let schema = json!({ "type": "string", "minLength": 1, "description": ID });
            own.add_parameter(json!({ "name": "id", "in": "path", "required": true }), schema);
            own.refusals.extend([ErrorCode::ProcessNotFound, ErrorCode::AmbiguousId]);
        }
        own
    }

    /// Its path has the id of a token.
    pub(super) fn token_id(mut self) -> Self {
        let schema =
            json!({ "type": "string", "minLength": 1, "description": "An id of a token." });
        self.add_parameter(json!({ "name": "token", "in": "path", "required": true }), schema);
        self
    }

    /// Its path has the name of a node.
    pub(super) fn node_name(mut self) -> Self {
        let schema =
            json!({ "type": "string", "minLength": 1, "description": "The name of a node." });
        self.add_parameter(json!({ "name": "node", "in": "path", "required": true }), schema);
        self
    }

    /// It needs no token.
    pub(super) fn for_anybody(mut self) -> Self {
        self.document["security"] = json!([]);
        self.refusals.retain(|code| *code != ErrorCode::Unauthorized);
        self
    }

    /// What it can be refused for, besides what anything can.
    pub(super) fn refused(mut self, codes: &[ErrorCode]) -> Self {
        self.refusals.extend(codes);
        self
    }

    /// Fields of the head that it heeds, and what each is for.
    pub(super) fn head(mut self, fields: &[(&str, &str)]) -> Self {
        for (name, description) in fields {
            let field = json!({ "name": name, "in": "header", "description": description });
            self.add_parameter(field, json!({ "type": "string" }));
        }
        self
    }

    pub(super) fn query<T: JsonSchema>(mut self) -> Self {
        // Written out where it is used, not referred to: its fields become parameters.
        let query = T::json_schema(&mut self.schemas.borrow_mut()).to_value();
        let required = query["required"].as_array().map_or(&[][..], Vec::as_slice);
        for (name, schema) in query["properties"].as_object().into_iter().flatten() {
            let required = required.iter().any(|required| required == name);
            let schema = without_null(schema.clone());
            let field = json!({ "name": name, "in": "query", "required": required });
            self.add_parameter(field, schema);
        }
        self
    }

    pub(super) fn body<T: JsonSchema>(self) -> Self {
        let mut own = self.optional_body::<T>();
        own.document["requestBody"]["required"] = json!(true);
        own
    }

    /// A body that may as well be empty.
    pub(super) fn optional_body<T: JsonSchema>(self) -> Self {
        let schema = self.schema::<T>();
        self.with_body("application/json", schema)
    }

    /// A body that is any bytes.
    pub(super) fn bytes(self) -> Self {
        self.with_body("application/octet-stream", json!({}))
    }

    fn with_body(mut self, kind: &str, schema: Value) -> Self {
        let content = json!({ kind: { "schema": schema } });
        self.document["requestBody"] = json!({ "content": content, "required": false });
        self.refused(&OF_A_BODY)
    }

    pub(super) fn json<T: JsonSchema>(mut self, status: u16) -> Self {
        let schema = self.schema::<T>();
        self.answer(status)["content"]["application/json"]["schema"] = schema;
        self
    }

    /// An answer that no schema describes.
    pub(super) fn content(mut self, status: u16, kind: &str) -> Self {
        self.answer(status)["content"][kind] = json!({});
        self
    }

    pub(super) fn empty(mut self, status: u16) -> Self {
        self.answer(status);
        self
    }

    /// Fields that the head of an answer with this status can have.
    pub(super) fn answer_head(mut self, status: u16, fields: &[Field]) -> Self {
        let field = |(name, kind, description): &Field| {
            let schema = json!({ "type": kind });
            ((*name).to_owned(), json!({ "description": description, "schema": schema }))
        };
        self.answer(status)["headers"] = fields.iter().map(field).collect();
        self
    }

    /// All of it, with the answers that refuse.
    pub(super) fn into_document(mut self) -> Value {
        for (status, answer) in refusals::answers(&self.refusals) {
            self.document["responses"][status] = answer;
        }
        self.document
    }

    fn add_parameter(&mut self, mut parameter: Value, schema: Value) {
        parameter["schema"] = schema;
        if let Value::Array(parameters) = &mut self.document["parameters"] {
            parameters.push(parameter);
        }
    }

    fn schema<T: JsonSchema>(&self) -> Value {
        self.schemas.borrow_mut().subschema_for::<T>().to_value()
    }

    fn answer(&mut self, status: u16) -> &mut Value {
        let description = self.document["summary"].clone();
        let answer = &mut self.document["responses"][status.to_string()];
        answer["description"] = description;
        answer
    }
}

/// A query has no null: what is not said is absent. An option has a type or a reference, then null.
fn without_null(mut schema: Value) -> Value {
    let Some(members) = schema.as_object_mut() else { return schema };
    if let Some(kind) = members.get("type").and_then(|kinds| kinds.get(0)).cloned() {
        members.insert("type".into(), kind);
    }
    if let Some(choice) = members.remove("anyOf") {
        members.insert("$ref".into(), choice[0]["$ref"].clone());
    }
    schema
}
