//! The registration document (design of the operator's interface): what operators write, read into
//! typed objects. All mistakes are found in one go, each with its place and its rule; a document
//! with one mistake gives no objects at all.
//!
//! `kind` is the table of what can be registered, `document` the whole, `client` and its neighbours
//! the objects in it, `walker` the reading of one JSON object, `references` what only holds between
//! objects.

pub mod client_checkup;

pub mod catalogue;
pub mod client;
pub mod client_rules;
pub mod client_secret;
pub mod document;
pub mod import;
pub mod names;
pub mod plan;
pub mod problem;
pub mod provider;
pub mod references;
pub mod timestamp;
pub mod user;
pub mod walker;

pub use problem::DocumentProblem;
use serde_json::Value;
use walker::Walker;

pub use crate::protocol::registration::document::ObjectKind;

/// Reads what is stored, as the reading of its kind has it; `path` stands before the places in
/// problems. What a document would be refused for is refused here, too.
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
