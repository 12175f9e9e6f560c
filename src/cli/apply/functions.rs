//! What can answer the extension grants of a document: functions compiled in, and SQL functions, each looked up before it
//! is registered.

use crate::app::extension_grant::ExtensionGrant;
use crate::cli::arguments::Invocation;
use crate::cli::failure::Failure;
use crate::cli::operator::Operator;
use crate::cli::serve::function_settings;
use crate::protocol::registration::document::Document;
use crate::protocol::registration::{self, Kind, Problem, extension_grant};
use crate::store::Store;
use crate::store::catalogue::{FoundFunction, look_up_function};

pub(in crate::cli) struct Functions {
    compiled_in: &'static [ExtensionGrant],
    store: Store,
}

impl Functions {
    pub(in crate::cli) fn of(invocation: &Invocation, operator: &Operator) -> Result<Functions, Failure> {
        let store = Store::open_for_functions(&function_settings(&operator.config))?;
        Ok(Functions { compiled_in: invocation.extension_grants, store })
    }

    /// Names that need no registration and can have none.
    pub(super) fn compiled_in(&self) -> impl Iterator<Item = String> {
        self.compiled_in.iter().map(|grant| grant.name.to_owned())
    }

    pub(super) fn check(&self, document: &Document) -> Result<(), Failure> {
        let mut problems = Vec::new();
        for entry in document.entries.iter().filter(|entry| entry.kind == Kind::ExtensionGrant) {
            let Ok(grant) = registration::stored(&entry.document, "", extension_grant::read) else { continue };
            let name = format!("{}.{}", grant.schema, grant.function);
            let rule = match look_up_function(&self.store, &grant)? {
                FoundFunction::Callable => continue,
                FoundFunction::Forbidden => format!("names {name}, which the role that will call it may not execute"),
                FoundFunction::Missing => {
                    format!("names {name}, and there is no such function (jsonb, jsonb) returning jsonb")
                }
            };
            problems.push(Problem::new(format!("{}.function", entry.place), rule));
        }
        if problems.is_empty() { Ok(()) } else { Err(Failure::of_document(&problems)) }
    }
}
