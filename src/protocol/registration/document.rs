//! The whole document.

use serde_json::{Map, Value};

use crate::protocol::scope::{RegisteredScope, RegisteredTenant};

use super::assertion_issuer::{self, AssertionIssuer};
use super::client::{self, ClientEntry};
use super::defaults::ClientDefaults;
use super::extension_grant::{self, ExtensionGrant};
use super::problem::Problem;
use super::provider::{self, IdentityProvider};
use super::references::{self, Stored};
use super::resource::{self, ResourceEntry};
use super::scope;
use super::tenant;
use super::user::{self, UserEntry};
use super::walker::Walker;

/// A document in which everything is in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// `tenants`
    pub tenants: Vec<Entry<RegisteredTenant>>,
    /// `identity_scopes`
    pub identity_scopes: Vec<Entry<RegisteredScope>>,
    /// `resource_scopes`
    pub resource_scopes: Vec<Entry<RegisteredScope>>,
    /// `resources`
    pub resources: Vec<Entry<ResourceEntry>>,
    /// `identity_providers`
    pub identity_providers: Vec<Entry<IdentityProvider>>,
    /// `assertion_issuers`
    pub assertion_issuers: Vec<Entry<AssertionIssuer>>,
    /// `extension_grants`
    pub extension_grants: Vec<Entry<ExtensionGrant>>,
    /// `clients`
    pub clients: Vec<ClientEntry>,
    /// `users`
    pub users: Vec<UserEntry>,
}

/// An object and what is stored of it: itself as registered, without secrets and nulls.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<T> {
    /// Read and judged.
    pub object: T,
    /// To be stored; reads back as the same object.
    pub document: Value,
}

/// The lists of a document, in its order.
pub const KEYS: [&str; 9] = [
    "tenants",
    "identity_scopes",
    "resource_scopes",
    "resources",
    "identity_providers",
    "assertion_issuers",
    "extension_grants",
    "clients",
    "users",
];

impl Document {
    /// Reads a document and judges it against itself and against what is stored. The error holds every problem.
    pub fn from_json(value: &Value, defaults: &ClientDefaults, stored: &Stored) -> Result<Document, Vec<Problem>> {
        let mut problems = Vec::new();
        find_nul(value, "", &mut problems);
        let document = Walker::open(value, "", &KEYS, &mut problems).map(|mut walker| read(&mut walker, defaults));
        if let Some(document) = document.as_ref().filter(|_| items_are_objects(value)) {
            problems.extend(references::check(document, stored));
        }
        problems.sort_by_key(place_order);
        document.filter(|_| problems.is_empty()).ok_or(problems)
    }
}

fn read(walker: &mut Walker<'_, '_>, defaults: &ClientDefaults) -> Document {
    let client =
        |value: &Value, path: &str, problems: &mut Vec<Problem>| client::entry(value, path, defaults, problems);
    Document {
        tenants: entries(walker, "tenants", tenant::entry),
        identity_scopes: entries(walker, "identity_scopes", scope::identity_entry),
        resource_scopes: entries(walker, "resource_scopes", scope::resource_entry),
        resources: entries(walker, "resources", resource::entry),
        identity_providers: entries(walker, "identity_providers", provider::entry),
        assertion_issuers: entries(walker, "assertion_issuers", assertion_issuer::entry),
        extension_grants: entries(walker, "extension_grants", extension_grant::entry),
        clients: walker.list("clients", client).unwrap_or_default(),
        users: walker.list("users", user::entry).unwrap_or_default(),
    }
}

type Parse<T> = fn(&Value, &str, &mut Vec<Problem>) -> Option<T>;

fn entries<T>(walker: &mut Walker<'_, '_>, key: &str, parse: Parse<T>) -> Vec<Entry<T>> {
    let entry = |value: &Value, path: &str, problems: &mut Vec<Problem>| {
        let object = parse(value, path, problems)?;
        Some(Entry { object, document: stored_form(value) })
    };
    walker.list(key, entry).unwrap_or_default()
}

fn stored_form(value: &Value) -> Value {
    let members = value.as_object().into_iter().flatten();
    let kept = members.filter(|(key, value)| !matches!(key.as_str(), "secrets" | "client_secret") && !value.is_null());
    Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<String, Value>>())
}

/// An item that is no object is left out of its list, and what stands behind it no longer in its place.
fn items_are_objects(value: &Value) -> bool {
    let lists = value.as_object().into_iter().flatten().filter_map(|(_, list)| list.as_array());
    lists.flatten().all(Value::is_object)
}

/// Postgres stores no NUL, neither in text nor in jsonb.
fn find_nul(value: &Value, path: &str, problems: &mut Vec<Problem>) {
    let rule = "must not hold a NUL character";
    match value {
        Value::String(text) if text.contains('\0') => problems.push(Problem::new(path, rule)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| find_nul(item, &format!("{path}[{index}]"), problems));
        }
        Value::Object(members) => {
            for (key, member) in members {
                let shown = key.escape_debug();
                let place = if path.is_empty() { shown.to_string() } else { format!("{path}.{shown}") };
                if key.contains('\0') {
                    problems.push(Problem::new(&place, rule));
                }
                find_nul(member, &place, problems);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// By list and index, as the document is read.
fn place_order(problem: &Problem) -> (usize, usize) {
    let list = problem.path.split(['[', '.']).next().unwrap_or_default();
    let index = problem.path.split(['[', ']']).nth(1).and_then(|index| index.parse().ok());
    (KEYS.iter().position(|key| *key == list).map_or(0, |position| position + 1), index.unwrap_or(0))
}
