//! JSON as Go's decoder takes it: the first value of a body, checked whole before it is looked at.

mod scan;
mod value;

pub(super) use scan::{Malformed, first_value, only_value};
pub(super) use value::{Kind, Value};
