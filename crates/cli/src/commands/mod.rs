//! The commands, one file each.

pub(crate) mod app_server;
pub(crate) mod attach;
pub(crate) mod cli_doc;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod forget;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod ps;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod shutdown;
pub(crate) mod signal;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod wait;
pub(crate) mod write;
