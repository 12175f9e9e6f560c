//! One file per endpoint or page: each loads what is needed, lets the core decide, writes, answers.

pub mod answers;
pub mod authorize;
pub mod brand;
pub mod client_authentication;
pub mod consent;
pub mod cookies;
pub mod discovery;
pub mod errand;
pub mod form_tokens;
pub mod forms;
pub mod health;
pub mod home;
pub mod introspection;
pub mod jwks;
pub mod login;
pub mod logout;
pub mod present_session;
pub mod revocation;
pub mod sealed_address;
pub mod sign_in;
pub mod static_files;
pub mod token;
pub mod userinfo;
pub mod visit;
