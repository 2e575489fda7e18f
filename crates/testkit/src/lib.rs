//! Fixtures for the tests of the other crates, and `testchild`.
