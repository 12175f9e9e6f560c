//! The pure core: the vocabulary of the standards, parsers of what comes in, and every decision. Nothing here does I/O,
//! reads a clock, draws randomness or logs; all of it is tested without a server.

pub mod cidr;
pub mod client;
pub mod errors;
pub mod identifiers;
pub mod instant;
pub mod nearest;
pub mod parameters;
pub mod password;
pub mod reason;
pub mod registration;
pub mod response_mode;
pub mod response_type;
pub mod scope;
pub mod secret;
pub mod web_url;
