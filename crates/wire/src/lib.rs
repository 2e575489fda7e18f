//! The words of the API: what is asked, what is answered, and the one list of errors.
//!
//! Plain data. Whoever asks for something that is not a word here gets an error that names it;
//! what is not known is absent from an answer, never made up. The JSON schema of all of it is in
//! `schema.json`, which `cargo xtask schema` writes; `openapi.json` has the routes, too, and is written
//! by `cargo xtask openapi`.

mod attach;
mod ending;
mod error;
mod events;
mod follow;
mod integers;
mod list;
mod object;
mod openapi;
mod output;
mod process;
mod range;
mod sandbox;
mod schema;
mod search;
mod start;
mod times;
mod verbs;
mod wait;

pub use attach::{AttachNotice, AttachQuery, AttachRequest};
pub use ending::{
    Cause, Closing, Ending, Holder, Kept, Status, StopVerb, TimeoutKind, Times, Usage,
};
pub use error::{Error, ErrorBody, ErrorCode};
pub use events::{Event, EventKind, EventsQuery, Gap};
pub use follow::{Bytes, FollowDropped, FollowOutput, FollowQuery, follow_events};
pub use list::{ListAnswer, ListQuery};
pub use openapi::{OPENAPI, openapi};
pub use output::{Content, Fold, Line, Output, OutputQuery, Stream, TextLine, View, head};
pub use process::{Phase, Process, Streams};
pub use range::Range;
pub use sandbox::Sandbox;
pub use schema::schema;
pub use search::{SearchAnswer, SearchLine, SearchMatch, SearchQuery, SearchStopped};
pub use start::{OnTimeout, StartAnswer, StartRequest, Stdin, StopPolicy, StreamsAsked, Tty};
pub use times::{Stamp, TimesAnswer, TimesQuery};
pub use verbs::{
    Delivered, ForgetQuery, Health, Reach, ResizeRequest, Root, SignalAnswer, SignalRequest,
    StopProof, StopRequest, Survivor, WriteAnswer, WriteQuery,
};
pub use wait::{Met, Wait, WaitAnswer};
