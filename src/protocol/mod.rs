//! The pure core: the vocabulary of the standards, parsers of what comes in, and every decision. Nothing here does I/O,
//! reads a clock, draws randomness or logs; all of it is tested without a server.

pub mod acr_values;
pub mod authorize_request;
pub mod authorize_response;
pub mod client;
pub mod consent;
pub mod constant_time;
pub mod cors;
pub mod errors;
pub mod forms;
pub mod identifiers;
pub mod instant;
pub mod interaction;
pub mod lengths;
pub mod parameters;
pub mod pkce;
pub mod prompt;
pub mod reason;
pub mod redirect_uri;
pub mod requested_claims;
pub mod response_mode;
pub mod response_type;
pub mod scope;
pub mod secret;
pub mod session;
