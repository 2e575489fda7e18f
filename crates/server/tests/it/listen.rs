//! Listening, by raw sockets and a router of the tests' own.

mod bodies;
mod connections;
mod fixture;
mod gate;
mod heads;
mod shutdown;
mod stalls;
