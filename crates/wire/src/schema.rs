//! The JSON schema of every request and answer, in one document.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::integers::with_ends;
use crate::{
    AttachNotice, AttachQuery, AttachRequest, ErrorBody, Event, EventsQuery, FollowDropped,
    FollowOutput, FollowQuery, ForgetQuery, Health, ListAnswer, ListQuery, OutputQuery,
    ResizeRequest, Root, SearchAnswer, SearchQuery, SignalAnswer, SignalRequest, StartAnswer,
    StartRequest, StopProof, StopRequest, Survivor, TimesAnswer, TimesQuery, WaitAnswer,
    WriteAnswer, WriteQuery,
};

/// All of it, under `$defs`.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    generator.subschema_for::<StartRequest>();
    generator.subschema_for::<StartAnswer>();
    generator.subschema_for::<WaitAnswer>();
    generator.subschema_for::<ListQuery>();
    generator.subschema_for::<ListAnswer>();
    generator.subschema_for::<OutputQuery>();
    generator.subschema_for::<WriteQuery>();
    generator.subschema_for::<WriteAnswer>();
    generator.subschema_for::<SignalRequest>();
    generator.subschema_for::<SignalAnswer>();
    generator.subschema_for::<StopRequest>();
    generator.subschema_for::<StopProof>();
    generator.subschema_for::<Survivor>();
    generator.subschema_for::<ResizeRequest>();
    generator.subschema_for::<ForgetQuery>();
    generator.subschema_for::<EventsQuery>();
    generator.subschema_for::<Event>();
    generator.subschema_for::<FollowQuery>();
    generator.subschema_for::<FollowOutput>();
    generator.subschema_for::<FollowDropped>();
    generator.subschema_for::<SearchQuery>();
    generator.subschema_for::<SearchAnswer>();
    generator.subschema_for::<TimesQuery>();
    generator.subschema_for::<TimesAnswer>();
    generator.subschema_for::<AttachQuery>();
    generator.subschema_for::<AttachRequest>();
    generator.subschema_for::<AttachNotice>();
    generator.subschema_for::<Root>();
    generator.subschema_for::<Health>();
    generator.subschema_for::<ErrorBody>();
    with_ends(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "lastbyte",
        "$defs": generator.take_definitions(true),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_the_one_of_the_types() {
        let committed: Value = serde_json::from_str(include_str!("../schema.json")).unwrap();
        assert!(committed == schema(), "run `cargo xtask schema` and look at what it changes");
    }
}
