//! The SQL functions that extension grants name: each is looked up before it is registered.

use crate::protocol::registration::Problem;
use crate::protocol::registration::document::Document;
use crate::store::Store;
use crate::store::grant_functions::{Found, look_up};

use crate::cli::failure::Failure;

/// Notes grants whose function is not there, or not to be executed, over the connection that will call it.
pub(super) fn check(functions: &Store, document: &Document, problems: &mut Vec<Problem>) -> Result<(), Failure> {
    for (index, entry) in document.extension_grants.iter().enumerate() {
        let name = format!("{}.{}", entry.object.schema, entry.object.function);
        let rule = match look_up(functions, &entry.object)? {
            Found::Callable => continue,
            Found::Forbidden => format!("names {name}, which the role that will call it may not execute"),
            Found::Missing => format!("names {name}, and there is no such function (jsonb, jsonb) returning jsonb"),
        };
        problems.push(Problem::new(format!("extension_grants[{index}].function"), rule));
    }
    Ok(())
}
