//! The token endpoint: who asks, what each grant allows, what the tokens say.

pub mod access_token;
pub mod assertion;
pub mod audience;
pub mod claims;
pub mod client_authentication;
pub mod client_secret;
pub mod delegation;
pub mod dpop_proof;
pub mod extension_grant;
pub mod function_answer;
pub mod grant;
pub mod id_jag;
pub mod id_token;
pub mod introspection;
pub mod jwt_bearer;
pub mod liveness;
pub mod refresh_token;
pub mod token_exchange;
pub mod token_request;
pub mod userinfo;
pub mod workload_identity;
