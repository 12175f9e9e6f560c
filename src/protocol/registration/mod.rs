//! What is registered: clients, scopes, tenants, providers, users, each read from what is stored,
//! with its rules. All mistakes are found in one go, each with its place and its rule.
//!
//! `client` and its neighbours read one object each, by a table of its keys (`key_table`); `walker`
//! reads one JSON object of any kind;
//! `metadata_document` reads what a client says of itself. Whole documents are read in a crate of
//! their own, `src/registration`.

pub mod administration;
pub mod catalogue;
pub mod client;
pub mod client_rules;
pub mod key_table;
pub mod kind;
pub mod metadata_document;
pub mod names;
pub mod problem;
pub mod profile;
pub mod provider;
pub mod timestamp;
pub mod user;
pub mod verified_address;
pub mod walker;
pub mod weak_setting;

pub use kind::ObjectKind;
pub use problem::{DocumentProblem, MOST_MISTAKES};
use serde_json::Value;
use walker::Walker;

/// Reads what is stored, with the reader of its kind. `path` is put before the places of problems.
/// What would be refused in a document is refused here, too.
pub fn stored<T>(
    document: &Value,
    path: &str,
    read: impl FnOnce(&mut Walker<'_>) -> T,
) -> Result<T, Vec<DocumentProblem>> {
    let mut problems = Vec::new();
    let object = Walker::object(document, path, &mut problems, read);
    object.filter(|_| problems.is_empty()).ok_or(problems)
}
