//! The verbs, and the doors to them.
