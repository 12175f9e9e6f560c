//! The vocabulary that every room of the core speaks.

pub mod acr_values;
pub mod claim_shape;
pub mod client;
pub mod forwarded;
pub mod grant;
pub mod identifiers;
pub mod instant;
pub mod liveness;
pub(crate) mod named;
pub mod parameters;
pub mod reason;
pub mod redirect_uri;
pub mod response_type;
#[cfg(test)]
pub(crate) mod samples;
pub mod scope;
pub mod secret;
pub mod session;
pub mod web_url;
