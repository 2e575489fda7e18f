//! The engine with real children, one file for each promise.
#![allow(unreachable_pub, reason = "nothing outside this program can reach anything")]
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod attack;
mod bad_input;
mod cgroups;
mod close;
mod control;
mod counts;
mod crash;
mod disconnect;
mod drain;
mod enforcements;
mod environment;
mod escapes;
mod failed_starts;
mod feed;
mod fixture;
mod full_disk;
mod home;
mod journal;
mod keys;
mod limits;
mod list;
mod log_files;
mod names;
mod old_state;
mod orphans;
mod output;
mod owner_gone;
mod pty;
mod quota;
mod restart;
mod sandbox;
mod secrets;
mod shortage;
mod spawning;
mod state_folder;
mod stdin;
mod stop;
mod stress;
mod timeouts;
mod times;
mod tree;
mod unprivileged;
mod views;
