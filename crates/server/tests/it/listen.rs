//! Listening, with raw sockets and a router for the tests.

mod answers;
mod bodies;
mod connections;
mod fixture;
mod gate;
mod half_closed;
mod heads;
mod shutdown;
mod stalls;
