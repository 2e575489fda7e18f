//! Numbers that must not be mistaken for each other.

use serde::{Deserialize, Serialize};

/// One stay of a node in the fleet: the revision of the presence entry by which it joined. A node
/// that crashed, or lost its lease, comes back with a higher one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch(pub u64);

/// A position in a KV bucket, given to each write. It only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Revision(pub u64);

/// A hash of a launch, equal for equal launches. It must be made with a secret of the fleet: a
/// launch has values of variables, and everyone who can read the bucket could guess them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub String);
