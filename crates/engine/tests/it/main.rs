//! The engine with real children, one file for each thing it promises.
#![allow(unreachable_pub, reason = "nothing outside this program can reach anything")]
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod attack;
mod bad_input;
mod close;
mod control;
mod counts;
mod crash;
mod drain;
mod environment;
mod feed;
mod fixture;
mod full_disk;
mod home;
mod journal;
mod keys;
mod leaves;
mod list;
mod orphans;
mod output;
mod owner_gone;
mod pty;
mod quota;
mod restart;
mod sandbox;
mod short_logs;
mod shortage;
mod spawning;
mod stdin;
mod stop;
mod stress;
mod timeouts;
mod times;
mod tree;
mod unprivileged;
mod views;
