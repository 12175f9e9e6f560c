//! The vocabulary that every room of the core speaks.

pub mod acr_values;
pub mod catalogue;
pub mod claim_set;
pub mod claim_shape;
pub mod client;
#[cfg(feature = "postgres-types")]
pub mod columns;
pub mod epochs;
pub mod forwarded;
pub mod identifiers;
pub mod identity_provider;
pub mod instant;
pub mod joined;
pub mod json;
pub mod legacy_flow;
pub mod mail_address;
pub mod named;
pub mod parameters;
pub mod place;
pub mod reason;
pub mod redirect_uri;
pub mod response_type;
pub mod rule;
#[cfg(any(test, feature = "testing"))]
pub mod samples;
pub mod scope;
pub mod secret;
pub mod sender;
pub mod session;
pub mod strength;
pub mod tls_words;
pub mod web_url;
