//! Listening, by raw sockets and a router of the tests' own.

mod answers;
mod bodies;
mod connections;
mod fixture;
mod gate;
mod half_closed;
mod heads;
mod shutdown;
mod stalls;
