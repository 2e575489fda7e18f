//! A client of the API: one typed, asynchronous method for each verb.
//!
//! ```no_run
//! # async fn example() -> Result<(), lastbyte_client::ClientError> {
//! use lastbyte_client::Client;
//! use lastbyte_client::wire::{StartRequest, Wait};
//!
//! let client = Client::unix("/run/user/1000/lastbyte/socket");
//! let make = StartRequest { shell: Some("make".into()), ..StartRequest::default() };
//! let id = client.start(&make).await?.process.id;
//! let ended = client.wait(&id, &Wait { exit: Some(true), ..Wait::default() }).await?;
//! # drop(ended); Ok(())
//! # }
//! ```
//!
//! A connection is kept from one request to the next and made anew when the server has closed it.
//! What may have reached the server is sent once more only if doing it twice is doing it once.
//!
//! A server that goes away and comes back, because it crashed or was upgraded, is waited for: requests
//! that are safe to repeat are repeated for up to ten seconds ([`Client::patience`]), and followers go on
//! at their cursor.

mod address;
mod attach;
mod client;
mod connection;
mod error;
mod events;
mod follow;
mod mcp;
mod outage;
mod query;
mod raw;
mod request;
mod sse;
mod subscription;
mod verbs;

pub use address::Address;
pub use attach::{Attached, AttachedReader, AttachedWriter, FromProcess};
pub use client::Client;
pub use error::{ClientError, Problem};
pub use events::{Events, News};
pub use follow::{Followed, Following, Piece};
pub use lastbyte_wire as wire;
pub use mcp::{McpMessage, McpRepeat};
pub use raw::RawOutput;
