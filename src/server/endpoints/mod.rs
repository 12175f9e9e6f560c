//! One room a feature: each endpoint or page loads what is needed, lets the core decide, writes,
//! answers.

pub mod account;
pub mod answer;
pub mod answers;
pub mod bound_session;
pub mod consent;
pub mod conversation;
pub mod cookies;
pub mod current_session;
pub mod device;
pub mod discovery;
pub mod forgotten;
pub mod forms;
pub mod letters;
pub mod links;
pub mod login;
pub mod logout;
pub mod metrics;
pub mod notices;
pub mod pushed_request;
pub mod start;
pub mod static_files;
pub mod token;
pub mod transaction;
pub mod upstream;
