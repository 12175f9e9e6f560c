//! The vocabulary that every room of the core speaks.

pub mod acr_values;
pub mod bearer;
pub mod claim_shape;
pub mod client;
pub mod cors;
pub mod epochs;
pub mod errors;
pub mod failed_attempts;
pub mod finding;
pub mod forms;
pub mod forwarded;
pub mod grant;
pub mod hex;
pub mod identifiers;
pub mod instant;
pub mod lengths;
pub mod liveness;
pub mod localized_text;
pub(crate) mod named;
pub mod nearest;
pub mod parameters;
pub mod prompt;
pub mod reason;
pub mod redirect_uri;
pub mod response_mode;
pub mod response_type;
#[cfg(test)]
pub(crate) mod samples;
pub mod scope;
pub mod secret;
pub mod session;
pub mod throttle;
pub mod user;
pub mod user_scope;
pub mod web_url;
