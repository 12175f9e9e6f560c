//! The pure core: the vocabulary of the standards, parsers of what comes in, and every decision. Nothing here does I/O,
//! reads a clock, draws randomness or logs; all of it is tested without a server.

pub mod access_token;
pub mod audience;
pub mod authorization_code;
pub mod bearer;
pub mod claims;
pub mod client;
pub mod client_authentication;
pub mod client_credentials;
pub mod code_challenge;
pub mod codec;
pub mod discovery;
pub mod errors;
pub mod id_token;
pub mod identifiers;
pub mod instant;
pub mod jwks;
pub mod jwt;
pub mod liveness;
pub mod parameters;
pub mod reason;
pub mod reference_token;
pub mod response_mode;
pub mod response_type;
pub mod scope;
pub mod secret;
pub mod token_request;
pub mod token_response;
pub mod token_subject;
pub mod user;
pub mod userinfo;
