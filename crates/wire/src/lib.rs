//! The types of the API: requests, answers, and the one list of error codes.
//!
//! Plain data. A field of a request that is not listed here is an error that names it; a value that is
//! not known is absent from an answer. `cargo xtask schema` writes the JSON schema to `schema.json`,
//! and `cargo xtask openapi` writes `openapi.json`, which has the routes too.

mod attach;
mod ending;
mod error;
mod events;
mod follow;
mod limits;
mod links;
mod list;
pub mod mcp;
mod nodes;
mod object;
mod openapi;
mod output;
mod process;
mod receipt;
mod sandbox;
mod schema;
mod search;
mod secrets;
mod select;
mod start;
mod times;
mod tokens;
mod verbs;
mod wait;

pub use attach::{AttachNotice, AttachQuery, AttachRequest};
pub use ending::{
    Cause, Closing, Ending, Holder, Kept, Status, StopVerb, TimeoutKind, Times, Usage,
};
pub use error::{Error, ErrorBody, ErrorCode};
pub use events::{Event, EventKind, EventsQuery, Gap};
pub use follow::{Bytes, FollowDropped, FollowOutput, FollowQuery, follow_events};
pub use limits::{Cpus, LimitEnforcement, LimitKind, Limits, LimitsEnforced};
pub use links::*;
pub use list::{ListAnswer, ListQuery};
pub use nodes::{DrainRequest, Node, NodeReport, NodeState, NodesAnswer};
pub use openapi::{OPENAPI, openapi};
pub use output::lines::{LinesAnswer, LinesQuery};
pub use output::*;
pub use process::{Keyboard, Phase, Process, Streams};
pub use receipt::{Enforcement, OutputHash, ProcessLimits, Receipt};
pub use sandbox::Sandbox;
pub use schema::schema;
pub use search::{SearchAnswer, SearchLine, SearchMatch, SearchQuery, SearchStopped};
pub use secrets::Secrets;
pub use select::{
    ForgetManyRequest, ManyAnswer, Outcome, Selection, SignalManyRequest, StopManyRequest,
    WaitManyAnswer, WaitManyRequest, WaitOutcome,
};
pub use start::{
    OnDisconnect, OnTimeout, Place, StartAnswer, StartRequest, Stdin, StopPolicy, StreamsAsked, Tty,
};
pub use times::{Stamp, TimesAnswer, TimesQuery};
pub use tokens::{CreateTokenAnswer, CreateTokenRequest, TokenInfo, TokenList, TokenScope};
pub use verbs::{
    Delivered, ForgetQuery, Health, HealthStatus, JournalHealth, KeeperHealth, Reach,
    ResizeRequest, Retention, Root, SignalAnswer, SignalRequest, StopProof, StopRequest, Survivor,
    UpgradeAnswer, UpgradeRequest, WriteAnswer, WriteQuery,
};
pub use wait::{HandOverEnd, InputKind, InputUnknown, Met, Wait, WaitAnswer};
