//! The registration document (design of the operator's interface): what operators write, read into typed objects. All
//! mistakes are found in one go, each with its place and its rule; a document with one mistake gives no objects at all.
//!
//! `document` is the whole, `client` and its neighbours the objects in it, `walker` the reading of one JSON object,
//! `references` what only holds between objects.

pub mod assertion_issuer;
pub mod catalogue_kind;
pub mod client;
mod client_rules;
pub mod client_secret;
pub mod defaults;
pub mod document;
pub mod export;
pub mod extension_grant;
pub mod json;
mod keys;
pub mod names;
pub mod plan;
pub mod problem;
pub mod provider;
pub mod references;
mod released_claims;
pub mod resource;
pub mod scope;
pub mod tenant;
pub mod timestamp;
pub mod user;
mod walker;

pub use problem::Problem;

/// What an object of each list can have, and the objects within a client. `client_name#` is `client_name#de` and so on.
pub const KEYS: [(&str, &[&str]); 11] = [
    ("tenants", tenant::KEYS),
    ("identity_scopes", scope::IDENTITY_KEYS),
    ("resource_scopes", scope::RESOURCE_KEYS),
    ("resources", resource::KEYS),
    ("identity_providers", provider::KEYS),
    ("assertion_issuers", assertion_issuer::KEYS),
    ("extension_grants", extension_grant::KEYS),
    ("clients", client::KEYS),
    ("secrets", client_secret::KEYS),
    ("token_exchange", client::TOKEN_EXCHANGE_KEYS),
    ("users", user::KEYS),
];

#[cfg(test)]
mod tests;
