//! What the service does when processes die, databases go away, senders dawdle and many come at
//! once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a panic here is a failed test"
)]

mod database_failures;
mod denials;
mod failover;
mod frozen;
mod http_edge;
mod log_reader;
mod outage;
mod processes;
mod pushed_requests;
mod restarts;
mod scim_writes;
mod server_connections;
mod server_endurance;
mod server_handler;
mod server_messages;
mod server_processes;
mod server_reload;
mod server_settings;
mod serving;
mod standby;
mod two_programs;

#[allow(dead_code, reason = "no test binary uses all of it")]
#[path = "../support/mod.rs"]
mod support;
