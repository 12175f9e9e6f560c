//! The pure core: the vocabulary of the standards, parsers of what comes in, and every decision. Nothing here does I/O,
//! reads a clock, draws randomness or logs; all of it is tested without a server.

// The vocabulary
pub mod allowance;
pub mod client;
pub mod consent;
pub mod epochs;
pub mod errors;
pub mod grant;
pub mod identifiers;
pub mod instant;
pub mod lengths;
pub(crate) mod named;
pub mod prompt;
pub mod reason;
pub mod response_mode;
pub mod response_type;
pub mod scope;
pub mod secret;
pub mod session;
pub mod upstream;
pub mod user;

// Reading what comes in
pub mod basic_credentials;
pub mod bearer;
pub mod cors;
pub mod forms;
pub mod forwarded;
pub mod outbound_address;
pub mod parameters;
pub mod raster_image;
pub mod web_url;

// The authorization endpoint
pub mod acr_values;
pub mod authorize_request;
pub mod authorize_response;
pub mod interaction;
pub mod pkce;
pub mod redirect_uri;
pub mod requested_claims;
pub mod sealed_request;
pub mod session_state;
pub mod throttle;

// The token endpoint
pub mod assertion;
pub mod audience;
pub mod audit_chain;
pub mod audit_heads;
pub mod audit_verification;
pub mod authorization_code;
pub mod client_assertion;
pub mod client_authentication;
pub mod client_checkup;
pub mod client_credentials;
pub mod client_secret;
pub mod device_authorization_request;
pub mod device_code;
pub mod extension_grant;
pub mod failed_attempts;
pub mod function_answer;
pub mod jwt_bearer;
pub mod refresh_token;
pub mod token_exchange;
pub mod token_request;
pub mod token_response;
pub mod user_scope;

// The way out
pub mod end_session;
pub mod logout_token;

// Tokens and who may use them
pub mod access_token;
pub mod claim_shape;
pub mod claims;
pub mod delegation;
pub mod hex;
pub mod id_token;
pub mod introspection;
pub mod jwks;
pub mod jwt;
pub mod key_set;
pub mod liveness;
pub mod userinfo;

// What is published and registered
pub mod discovery;
pub mod finding;
pub mod key_schedule;
pub mod localized_text;
pub mod nearest;
pub mod password;
pub mod registration;
pub mod weak_settings;

#[cfg(test)]
pub(crate) mod samples;
