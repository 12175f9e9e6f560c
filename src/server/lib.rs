//! The server: from the socket to the answer. `serve` starts it with the routes that it is handed.

pub mod app;
pub mod arguments;
pub mod config;
pub mod dispatch;
pub mod endpoints;
pub mod http;
pub mod keys;
pub mod logging;
pub mod metrics;
pub mod outbound;
pub mod pages;
pub mod registry;
pub mod serve;
pub mod server;
pub mod supervisor;

pub use dispatch::routes::ROUTES;
pub use serve::run_with;
