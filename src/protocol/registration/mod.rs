//! The registration document: what operators write, read into typed objects. All mistakes are found
//! in one go, each with its place and its rule. A document with one mistake gives no objects at
//! all.
//!
//! `document` reads the whole, `client` and its neighbours the objects in it, `walker` one JSON
//! object; `references` checks what holds between objects. `plan` compares a document with what is
//! registered, `import` makes one of what another program has, and `client_checkup` says what keeps
//! a registered client from working. `metadata_document` reads what a client says of itself.

pub mod client_checkup;

pub mod administration;
pub mod catalogue;
pub mod client;
pub mod client_rules;
pub mod client_secret;
pub mod document;
pub mod grade;
pub mod import;
pub mod kind;
pub mod metadata_document;
pub mod names;
pub mod plan;
pub mod problem;
pub mod profile;
pub mod provider;
pub mod references;
pub mod released_claims;
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
    read: impl FnOnce(&mut Walker<'_, '_>) -> T,
) -> Result<T, Vec<DocumentProblem>> {
    let mut problems = Vec::new();
    let object = Walker::object(document, path, &mut problems, read);
    object.filter(|_| problems.is_empty()).ok_or(problems)
}

#[cfg(test)]
mod tests;
